import { connect } from 'node:net';

export interface RawRequestOptions {
  /** Close the connection once the answer contains this text. Without it, read until the server closes. */
  until?: string;
  /** Send `send` once the answer contains `after`. */
  then?: { after: string; send: string };
  /** Longest time in ms to wait for the server to close. */
  timeout?: number;
}

/** Sends any bytes on a new connection and returns everything that the server sends. */
export function rawRequest(port: number, bytes: string | Buffer, options: RawRequestOptions = {}): Promise<string> {
  const { until, then, timeout = 10_000 } = options;
  return new Promise((resolve, reject) => {
    let answer = '';
    let pending = then;
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`The server kept the connection open for ${timeout} ms after: ${answer}`));
    }, timeout);
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (pending && answer.includes(pending.after)) {
        socket.write(pending.send);
        pending = undefined;
      }
      if (until !== undefined && answer.includes(until)) finish();
    });
    socket.on('end', finish);
    // A server may reset the connection after its answer.
    socket.on('error', finish);
  });
}

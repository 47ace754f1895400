import { connect } from 'node:net';

export interface RawRequestOptions {
  /** Stop reading and hang up once the answer contains this; otherwise read until the server closes. */
  until?: string;
  /** Once the answer contains `after`, send more. */
  then?: { after: string; send: string };
  /** Longest time in ms to wait for the server to close. */
  timeout?: number;
}

/** Sends bytes over a connection of their own, whatever they are, and returns everything that comes back. */
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
    // A reset after the answer has arrived is how a server may end a connection.
    socket.on('error', finish);
  });
}

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

export interface RawRequestOptions {
  /** Close the connection once the response contains this text. Without it, read until the server closes. */
  until?: string;
  /** Send `send` once the response contains `after`. */
  then?: { after: string; send: string };
  /** Longest time in ms to wait for the server to close. */
  timeout?: number;
}

/** Statuses of the responses in a text, in their order. */
export const statusesOf = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

/** A connection that a test opens and uses itself. */
export interface RawClient {
  readonly socket: Socket;
  /** All that the server has sent. */
  readonly text: () => string;
}

/** Opens a connection, and sends bytes without waiting for a response. */
export async function openClient(port: number, bytes = ''): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  let text = '';
  socket.on('data', (chunk: string) => (text += chunk)).on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(bytes);
  return { socket, text: () => text };
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
    // A server may reset the connection after its response.
    socket.on('error', finish);
  });
}

/**
 * Sends segments of bytes, one character each; returns what a server sends until it closes. Before each further segment it waits
 * until the server has sent something, for at most 1 s.
 */
export async function sendSegments(url: URL, segments: readonly string[], timeoutMs: number): Promise<string> {
  const isTls = url.protocol === 'https:';
  const port = Number(url.port || (isTls ? 443 : 80));
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const socket = isTls ? connectTls({ port, host, servername: host }) : connect(port, host).setNoDelay(true);
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  // A server may reset a connection after its response.
  socket.on('error', (error: Error) => (received ||= error.message));
  const closed = new Promise((resolve) => void socket.once('end', resolve).once('close', resolve));
  for (const [index, segment] of segments.entries()) {
    if (index > 0) await Promise.race([once(socket, 'data').catch(() => undefined), closed, sleep(1_000)]);
    if (!socket.destroyed) socket.write(segment, 'latin1');
  }
  const late = sleep(timeoutMs, 'STILL OPEN', { ref: false });
  if ((await Promise.race([closed, late])) === 'STILL OPEN') received += 'STILL OPEN';
  socket.destroy();
  return received;
}

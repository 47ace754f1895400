import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PetStoreError } from '../src/index.js';

/** A request that a server has received. */
export interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A server that follows the steps of a test, and records the requests. */
export interface ScriptedServer {
  readonly origin: string;
  readonly received: Received[];
  close(): Promise<void>;
}

/** Starts a server that handles each request by the next step; the last step handles all that follow. */
export async function startServer(...steps: RequestListener[]): Promise<ScriptedServer> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const step = steps[Math.min(received.length, steps.length - 1)] as RequestListener;
    const { method, url: path, headers } = request;
    const index = received.push({ method, path, headers, body: '' }) - 1;
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      received[index] = { ...(received[index] as Received), body };
      step(request, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A step: responds with a status, a body and header fields. JSON unless the fields say otherwise. */
export function answer(status: number, body: string, headers: Record<string, string> = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
}

/** A step: responds with an error of the service. */
export function errorAnswer(status: number, code: string, headers: Record<string, string> = {}): RequestListener {
  return answer(status, JSON.stringify({ code, message: `This is ${code}.`, status }), headers);
}

/** The error of a call. The test fails if the call succeeds, or rejects with something else than a PetStoreError. */
export async function failureOf(call: Promise<unknown>): Promise<PetStoreError> {
  const outcome = await call.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(PetStoreError);
  return outcome as PetStoreError;
}

import type { Request, Response } from 'express';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { ApiError } from '../../errors/api-error.js';
import { RequestAbortedError } from '../../errors/request-aborted.error.js';
import { ArrivingBodies } from './arriving-bodies.js';
import { readBody } from './request-body.js';
import { RequestContext } from '../requests/request-context.js';
import { MAX_ARRIVING_BODY_BYTES } from '../requests/server-limits.js';

const MAX_BYTES = 20;

const memory = new ArrivingBodies();

/** Waits until the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Counts the errors of a class that are created while `run` runs. */
async function countErrors(
  type: typeof ApiError | typeof RequestAbortedError,
  run: () => Promise<void>,
): Promise<number> {
  let made = 0;
  class CountedError extends Error {
    constructor(message?: string, options?: ErrorOptions) {
      super(message, options);
      made++;
    }
  }
  Object.setPrototypeOf(type, CountedError);
  try {
    await run();
  } finally {
    Object.setPrototypeOf(type, Error);
  }
  return made;
}

describe('readBody', () => {
  let server: Server;
  let arrive: (request: Request, response: Response) => void;
  beforeAll(async () => {
    server = createServer();
    server.on('request', (request: Request, response: Response) => {
      request.context = new RequestContext('id');
      request.on('error', () => undefined);
      arrive(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );

  // However a body ends, nothing of the memory stays taken.
  afterEach(() => {
    expect(memory.take(MAX_ARRIVING_BODY_BYTES)).toBeUndefined();
    memory.release(MAX_ARRIVING_BODY_BYTES);
  });

  interface Exchange {
    readonly client: Socket;
    readonly request: Request;
    /** Every body or error that reading produced, in order. */
    readonly outcomes: unknown[];
    readonly read: () => void;
    readonly chunk: (text: string) => void;
  }

  /** Sends the header section of a request whose body comes in chunks. */
  async function begin(): Promise<Exchange> {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.on('error', () => undefined);
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
    const [request, response] = await new Promise<[Request, Response]>((resolve) => {
      arrive = (...message) => resolve(message);
    });
    const outcomes: unknown[] = [];
    const read = (): void => {
      readBody(request, MAX_BYTES, memory, true).then(
        (body) => {
          outcomes.push(body);
          response.end();
        },
        (error: unknown) => {
          outcomes.push(error);
          // Drops the rest, as the service does when it answers early.
          request.resume();
        },
      );
    };
    const chunk = (text: string): void => void client.write(`${text.length.toString(16)}\r\n${text}\r\n`);
    return { client, request, outcomes, read, chunk };
  }

  /** Begins to read a body, and returns when its first chunk, `{"name":`, has arrived. */
  async function beginReading(): Promise<Exchange> {
    const exchange = await begin();
    const arrived = new Promise((resolve) => exchange.request.once('data', resolve));
    exchange.read();
    exchange.chunk('{"name":');
    await arrived;
    return exchange;
  }

  test('joins a body that arrives in pieces; closing the connection afterwards is no error', async () => {
    const made = await countErrors(RequestAbortedError, async () => {
      const { client, request, outcomes, chunk } = await beginReading();
      chunk('"Rex"}');
      client.write('0\r\n\r\n');
      await until(() => outcomes.length > 0 && request.closed);
      expect(outcomes).toEqual([{ name: 'Rex' }]);
      client.destroy();
      request.emit('error', new Error('after the end'));
      request.emit('close');
      await new Promise((resolve) => setImmediate(resolve));
      expect(outcomes.length).toBe(1);
    });
    expect(made).toBe(0);
  });

  test('refuses a body once when it becomes too large, and drops the rest', async () => {
    const made = await countErrors(ApiError, async () => {
      const { client, request, outcomes, read, chunk } = await begin();
      read();
      let pieces = 0;
      request.on('data', () => pieces++);
      for (const text of ['x'.repeat(MAX_BYTES), 'y']) {
        const earlier = pieces;
        expect(outcomes).toEqual([]);
        chunk(text);
        await until(() => pieces > earlier);
        await new Promise((resolve) => setImmediate(resolve));
      }
      // The refusal comes before the rest is sent.
      await until(() => outcomes.length > 0);
      for (let count = 3; count < 6; count++) {
        chunk('z');
        await until(() => pieces === count);
      }
      client.write('0\r\n\r\n');
      await until(() => request.closed);
      client.destroy();
      expect(outcomes).toEqual([
        expect.objectContaining({ message: 'The body must not be larger than 20 bytes.' }) as unknown,
      ]);
    });
    expect(made).toBe(1);
  });

  test('reads a body of exactly the largest size', async () => {
    const { client, outcomes, read, chunk } = await begin();
    read();
    for (const text of ['"', 'x'.repeat(MAX_BYTES - 2), '"']) chunk(text);
    client.write('0\r\n\r\n');
    await until(() => outcomes.length > 0);
    expect(outcomes).toEqual(['x'.repeat(MAX_BYTES - 2)]);
    client.destroy();
  });

  test.each<[string, (client: Socket, request: Request) => void]>([
    ['ends', (client) => client.end()],
    ['is reset', (client) => client.resetAndDestroy()],
    ['is destroyed by the server', (_, request) => request.destroy()],
  ])('rejects with RequestAbortedError when the connection %s in the middle of the body', async (_, leave) => {
    const made = await countErrors(RequestAbortedError, async () => {
      const { client, request, outcomes } = await beginReading();
      expect(outcomes).toEqual([]);
      leave(client, request);
      await until(() => request.closed);
      await new Promise((resolve) => setImmediate(resolve));
      expect(outcomes).toEqual([expect.any(RequestAbortedError)]);
    });
    expect(made).toBe(1);
  });

  test('rejects with RequestAbortedError when the connection closed before the call', async () => {
    const { client, request, outcomes, read, chunk } = await begin();
    chunk('{"name":');
    client.resetAndDestroy();
    await until(() => request.closed);
    read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(outcomes).toEqual([expect.any(RequestAbortedError)]);
  });

  test('rejects when the body has been read already', async () => {
    const { client, request, outcomes, read, chunk } = await begin();
    request.resume();
    chunk('{}');
    client.write('0\r\n\r\n');
    await until(() => request.closed);
    read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(outcomes).toEqual([new Error('The body of this request has been read already.')]);
    client.destroy();
  });
});

import express, { type Request, type Response } from 'express';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { ApiError, RequestAbortedError } from '../errors/api-error.js';
import { RequestContext } from './requests/request-context.js';
import { RequestsInFlight } from './requests/requests-in-flight.js';
import { CHUNK_COST, MAX_BYTES_OF_BODIES } from './requests/server-limits.js';
import { type BodyPlan, BodyReader } from './body-reader.js';

const MAX_BYTES = 20;
const PLAN: BodyPlan = {
  isRequired: true,
  leavesMultipart: false,
  maxBytes: MAX_BYTES,
  keepsBytes: false,
  types: undefined,
  parameterType: undefined,
};

const REQUESTS_IN_FLIGHT = 10;
const inFlight = new RequestsInFlight(REQUESTS_IN_FLIGHT);
const bodies = new BodyReader(inFlight);

/** Waits until the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

let server: Server;
let arrive: (request: Request, response: Response) => void;
beforeAll(async () => {
  server = createServer();
  server.on('request', (request: Request, response: Response) => {
    Object.setPrototypeOf(request, express.request);
    request.context = new RequestContext('id');
    request.res = response;
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

/** The bytes that count towards the common bound. */
const memory = bodies as unknown as { held: number };

// However a body ends, nothing of the memory stays taken.
afterEach(() => until(() => memory.held === 0));

interface Exchange {
  readonly client: Socket;
  readonly request: Request;
  /** Every body or error that reading produced, in order. */
  readonly outcomes: unknown[];
  readonly chunk: (text: string) => void;
}

/** Sends the header section of a request whose body comes in chunks, and begins to read it. */
async function begin(before: (request: Request) => unknown = () => undefined): Promise<Exchange> {
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
  const [request, response] = await new Promise<[Request, Response]>((resolve) => {
    arrive = (...message) => resolve(message);
  });
  await before(request);
  const outcomes: unknown[] = [];
  (bodies.read(request, PLAN) as Promise<unknown>).then(
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
  const chunk = (text: string): void => void client.write(`${text.length.toString(16)}\r\n${text}\r\n`);
  return { client, request, outcomes, chunk };
}

describe('a body', () => {
  test('may have exactly the largest size', async () => {
    const { client, outcomes, chunk } = await begin();
    for (const text of ['"', 'x'.repeat(MAX_BYTES - 2), '"']) chunk(text);
    client.write('0\r\n\r\n');
    await until(() => outcomes.length > 0);
    expect(outcomes).toEqual(['x'.repeat(MAX_BYTES - 2)]);
    client.destroy();
  });

  test('is refused once it becomes too large, before the rest is sent', async () => {
    const { client, request, outcomes, chunk } = await begin();
    chunk('x'.repeat(MAX_BYTES));
    chunk('y');
    await until(() => outcomes.length > 0);
    chunk('z');
    client.write('0\r\n\r\n');
    await until(() => request.closed);
    client.destroy();
    expect(outcomes).toEqual([
      expect.objectContaining({ message: 'The body must not be larger than 20 bytes.' }) as unknown,
    ]);
  });

  test.each<[string, (client: Socket, request: Request) => void]>([
    ['ends', (client) => client.end()],
    ['is reset', (client) => client.resetAndDestroy()],
    ['is destroyed by the server', (_, request) => request.destroy()],
  ])('fails with RequestAbortedError when the connection %s in the middle', async (_, leave) => {
    const { client, request, outcomes, chunk } = await begin();
    chunk('{"name":');
    await once(request, 'data');
    leave(client, request);
    await until(() => request.closed && outcomes.length > 0);
    expect(outcomes).toEqual([expect.any(RequestAbortedError)]);
  });

  test('fails with RequestAbortedError when the connection closed before', async () => {
    const { outcomes } = await begin(async (request) => {
      request.destroy();
      await until(() => request.closed);
    });
    await until(() => outcomes.length > 0);
    expect(outcomes).toEqual([expect.any(RequestAbortedError)]);
  });

  test('is refused when MAX_REQUESTS_IN_FLIGHT others are in flight once it has arrived', async () => {
    const { client, outcomes, chunk } = await begin();
    const others = Array.from(
      { length: REQUESTS_IN_FLIGHT },
      () => ({ url: '/', context: new RequestContext('other') }) as Request,
    );
    for (const other of others) inFlight.admit(other);
    chunk('"x"');
    client.write('0\r\n\r\n');
    await until(() => outcomes.length > 0);
    expect(outcomes).toEqual([expect.objectContaining({ unavailableCause: 'requests_in_flight' })]);
    for (const { context } of others) inFlight.release(context);
    client.destroy();
  });

  test('counts until its request is answered', async () => {
    const { client, request, outcomes, chunk } = await begin();
    const response = request.res as Response;
    response.end = () => response;
    chunk('"x"');
    client.write('0\r\n\r\n');
    await until(() => outcomes.length > 0);
    expect(memory.held).toBe('"x"'.length + CHUNK_COST);
    // `afterEach` sees that the bytes are given back.
    client.destroy();
  });

  test('is refused when the memory for all bodies is taken', async () => {
    memory.held = MAX_BYTES_OF_BODIES - CHUNK_COST;
    const { client, outcomes, chunk } = await begin();
    chunk('{');
    await until(() => outcomes.length > 0);
    expect(outcomes).toEqual([expect.any(ApiError)]);
    expect(outcomes[0]).toMatchObject({ definition: { status: 503 }, unavailableCause: 'bodies' });
    memory.held -= MAX_BYTES_OF_BODIES - CHUNK_COST;
    client.destroy();
  });
});

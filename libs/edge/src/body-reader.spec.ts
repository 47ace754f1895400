import type { Request } from 'express';
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { RequestAbortedError } from '#errors';
import { JSON_LIMITS } from '#json';
import { type BodyPlan, BodyReader, FIELD_NAMES, parseForm } from './body-reader.js';
import { RequestContext } from './requests/request-context.js';
import { RequestsInFlight } from './requests/requests-in-flight.js';
import { Turns } from './requests/turns.js';
import { CHUNK_COST, MAX_BYTES_OF_BODIES } from './requests/server-limits.js';

const PLAN: BodyPlan = {
  isRequired: true,
  leavesMultipart: false,
  maxBytes: 20,
  limits: JSON_LIMITS,
  keepsBytes: false,
  types: undefined,
  parameterType: undefined,
};

const inFlight = new RequestsInFlight(1, () => undefined);
const bodies = new BodyReader(inFlight, new Turns());

/** The bytes that count towards the common bound. */
const memory = bodies as unknown as { held: number };

/** A request whose body is still arriving: the test writes it. */
function arriving(): Request & PassThrough {
  const context = new RequestContext('id');
  const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  const request = Object.assign(new PassThrough(), { url: '/', context, headers, res: new EventEmitter() });
  return request as unknown as Request & PassThrough;
}

/** Answers a request, after which it takes no place and no memory. */
function answer(request: Request): void {
  inFlight.release(request.context);
  request.res?.emit('close');
  expect([inFlight.count, memory.held]).toEqual([0, 0]);
}

test('a body counts until its request has a response', async () => {
  const request = arriving();
  const body = bodies.read(request, PLAN);
  request.end('"x"');
  expect(await body).toBe('x');
  expect(memory.held).toBe('"x"'.length + CHUNK_COST);
  answer(request);
});

test('a body is refused once it becomes too large, before the rest is sent', async () => {
  const request = arriving();
  const body = bodies.read(request, PLAN);
  request.write('x'.repeat(21));
  await expect(body).rejects.toThrow('The body must not be larger than 20 bytes.');
  answer(request);
});

test('a body is refused when the memory for all bodies is taken', async () => {
  const others = MAX_BYTES_OF_BODIES - CHUNK_COST;
  memory.held += others;
  const request = arriving();
  const refused = bodies.read(request, PLAN);
  request.write('{');
  await expect(refused).rejects.toMatchObject({ definition: { status: 503 }, unavailableCause: 'bodies' });
  // Before the response: its bytes are dropped.
  expect(memory.held).toBe(others);
  memory.held -= others;
  answer(request);
});

test('a body is refused when MAX_REQUESTS_IN_FLIGHT others are in flight once it has arrived', async () => {
  const [request, other] = [arriving(), arriving()];
  const body = bodies.read(request, PLAN);
  inFlight.admit(other);
  request.end('"x"');
  await expect(body).rejects.toMatchObject({ unavailableCause: 'requests_in_flight' });
  inFlight.release(other.context);
  answer(request);
});

test.each(['in the middle', 'before'])('a body fails when the connection closes %s', async (moment) => {
  const request = arriving();
  if (moment === 'before') await once(request.destroy(), 'close');
  const body = bodies.read(request, PLAN);
  request.write('{"name":', () => undefined);
  request.destroy();
  await expect(body).rejects.toThrow(RequestAbortedError);
  answer(request);
});

test('names and values of forms are decoded, also where a handler declares a name like their encoded text', () => {
  for (const name of ['size', 'a%20b', 'a+b']) FIELD_NAMES.set(name, name);
  const form = parseForm('size=1&a%20b=a%20b&a+b=size&%73ize=2&c=%ff');
  expect(form).toEqual({ size: ['1', '2'], 'a b': ['a b', 'size'], c: '\udcff' });
});

import {
  BadGatewayException,
  Get,
  HttpException,
  InternalServerErrorException,
  Module,
  Param,
  ServiceUnavailableException,
} from '@nestjs/common';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '#access';
import { ApiError, defineError, errorCatalogue } from '#errors';
import { violations } from '../../contract/judge.js';
import { PETS, REQUESTS } from '../../contract/rows.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import type { LogLine } from '../support/memory-log.js';
import { SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

/*
 * How the service responds to exceptions of a module that is written like any other Nest application, and errors that no row of
 * `contract/` can cause.
 */

const OVEN_BROKEN = defineError('oven_broken', 500, 'The oven is broken.');

const THROWN: Record<string, () => Error> = {
  bug: () => new TypeError('hidden-words'),
  internal: () => new InternalServerErrorException('hidden-words'),
  catalogued: () => new ApiError(OVEN_BROKEN, 'The oven is broken.', {}, { cause: new Error('hidden-words') }),
  unavailable: () => new ServiceUnavailableException('hidden-words'),
  gateway: () => new BadGatewayException('hidden-words', { cause: new Error('the cause of it') }),
};

const cycle: unknown[] = [];
cycle.push(cycle);

/** Values that are too deep for JSON. */
const UNWRITABLE: Record<string, unknown> = {
  cycle,
  deep: Array.from({ length: 100_000 }).reduce((inner) => [inner], 0),
};

const EXCEPTIONS = new Handlers('test-exceptions');
EXCEPTIONS.get('slow', () =>
  app.nest.get(DataSource).query(`DO $$ BEGIN RAISE 'secret internals' USING ERRCODE = '57014'; END $$`),
);
const fail = (name: string): unknown => {
  if (name in UNWRITABLE) return UNWRITABLE[name];
  throw THROWN[name]?.() ?? new HttpException(`Status ${name}.`, Number(name));
};
EXCEPTIONS.add(Get(':name'), 'fail', fail, { parameters: [[Param('name'), String]] });

@Module({ controllers: [EXCEPTIONS.controller] })
class ExceptionsModule {}

const ORIGIN = 'https://app.example.com';

let app: TestApp;
/** The examples by code, including those of single operations. */
let examples: Record<string, { value: object }>;
beforeAll(async () => {
  app = await createTestApp({
    features: [ExceptionsModule, SlowModule],
    settings: { MAX_REQUESTS_IN_FLIGHT: '1', RATE_LIMIT_PER_MINUTE: '60', CORS_ORIGINS: ORIGIN },
  });
  const { components, paths } = (await app.client.get('/openapi.json')).json;
  const removed = paths['/pets/{petId}'].get.responses[410].content['application/json'];
  examples = { ...components.examples, ...removed.examples };
});
afterAll(() => app.close());

/** The log lines of a request except its request line. */
function linesOf(requestId: string): LogLine[] {
  return app.log.lines.filter((line) => line['requestId'] === requestId && line.msg !== 'request');
}

test('every status from 400 to 599 is kept, with a code of the catalogue, and a 4xx keeps its message', async () => {
  const codes = new Map(errorCatalogue().map(({ code, status }) => [code, status]));
  for (let status = 400; status < 600; status++) {
    const headers = { 'x-request-id': `status-${status}` };
    const answer = await app.client.get(`/v1/test-exceptions/${status}`, { headers, expects500: true });
    const { code, ...body } = answer.json as { code: string; message: string; status: number };
    expect([answer.status, body.status]).toEqual([status, status]);
    // A 5xx has a fixed message. A 4xx is the client's fault, so nothing of it is logged.
    expect([status, body.message === `Status ${status}.`]).toEqual([status, status < 500]);
    if (status < 500) expect(linesOf(`status-${status}`)).toEqual([]);
    const others = { client_error: status < 500, server_error: status >= 500 }[code];
    expect([status, code, others ?? codes.get(code) === status]).toEqual([status, code, true]);
  }
});

test('a route of a module is preflighted with its own methods', async () => {
  const asked = { origin: ORIGIN, 'access-control-request-method': 'GET' };
  const preflight = await app.client.send('OPTIONS', '/v1/test-exceptions/400', { apiKey: null, headers: asked });
  expect(preflight.headers['access-control-allow-methods']).toBe('GET, HEAD, OPTIONS');
});

test.each([
  ['unavailable', 503, 'unavailable', 'The service cannot respond at the moment; Retry-After says when to try again.'],
  ['gateway', 502, 'bad_gateway', 'Another service that this request needs has failed.'],
])(
  'a 5xx has a fixed message, and its cause is logged as a warning of its request: %s',
  async (name, status, code, message) => {
    const headers = { 'x-request-id': `server-${name}` };
    // Such warnings are written at most once a second.
    await until(async () => {
      const answer = await app.client.get(`/v1/test-exceptions/${name}`, { headers });
      expect(answer.json).toEqual({ code, message, status });
      expect(answer.headers['retry-after']).toBe(status === 503 ? '1' : undefined);
      return linesOf(`server-${name}`).length > 0;
    });
    expect(linesOf(`server-${name}`)).toEqual([
      expect.objectContaining({
        level: 40,
        operation: 'fail',
        msg: expect.stringContaining(`Returned ${status}: hidden-words`) as string,
        error: expect.objectContaining({ stack: expect.stringContaining('exceptions.e2e-spec') as string }) as object,
      }),
    ]);
    if (name === 'gateway')
      expect(linesOf('server-gateway')[0]?.['error']).toMatchObject({ cause: { message: 'the cause of it' } });
  },
);

test.each([
  ['internal', 'internal_error', { message: 'hidden-words' }],
  ['catalogued', 'oven_broken', { cause: { message: 'hidden-words' } }],
  ['cycle', 'internal_error', { type: 'RangeError' }],
  ['deep', 'internal_error', { type: 'RangeError' }],
])('every 500 is logged as an error of its request: %s', async (name, code, error) => {
  const headers = { 'x-request-id': `bug-${name}` };
  const answer = await app.client.get(`/v1/test-exceptions/${name}`, { headers, expects500: true });
  expect([answer.status, answer.json]).toEqual([500, expect.objectContaining({ code })]);
  expect(answer.text).not.toContain('hidden-words');
  const [line, ...more] = linesOf(`bug-${name}`);
  expect(more).toEqual([]);
  expect(line).toMatchObject({ level: 50, operation: 'fail', error });
});

/** For each error, a request that causes it. */
const PROVOCATIONS: Record<string, () => Promise<HttpAnswer>> = {
  operation_removed: async () => {
    app.clock.travelTo('2030-12-05T00:00:00Z');
    const answer = await app.client.get('/v1/pets/1');
    app.clock.comeBack();
    return answer;
  },
  rate_limited: async () => {
    const keys = app.nest.get(ApiKeysService);
    const { secret } = await keys.create({ client: 'busy' });
    app.clock.travelTo(Date.now());
    let answer = await app.client.get('/v1/pets', { apiKey: secret });
    for (let call = 1; call <= 60; call++) answer = await app.client.get('/v1/pets', { apiKey: secret });
    app.clock.comeBack();
    return answer;
  },
  internal_error: () => app.client.get('/v1/test-exceptions/bug', { expects500: true }),
  took_too_long: () => app.client.get('/v1/test-exceptions/slow', { expects500: true }),
  unavailable: async () => {
    const held = app.client.get('/v1/test-slow');
    const release = await until(() => app.nest.get(TestSlowController).waiting.pop());
    const answer = await app.client.get('/v1/pets', { apiKey: null });
    release();
    await held;
    return answer;
  },
};

/** Errors that only modules send, with messages of their own. */
const OF_MODULES = [
  ...['client_error', 'unauthorized', 'forbidden', 'not_found', 'not_acceptable', 'conflict', 'gone'],
  ...['precondition_failed', 'unprocessable_content', 'server_error', 'not_implemented', 'bad_gateway'],
  'gateway_timeout',
];

/** Errors of the rows; `api/contract` compares their examples. */
const OF_ROWS = [...PETS, ...REQUESTS].flatMap(({ steps }) =>
  steps.flatMap(({ answer }) => /^(?:\d{3} )+([a-z_]+)/.exec(answer)?.[1] ?? []),
);

const SRC = join(import.meta.dirname, '../../src');

/** Errors of other features than the pets, which their own tests provoke. */
const OF_FEATURES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('pets/'))
  .flatMap((file) => [...readFileSync(join(SRC, file), 'utf8').matchAll(/defineError\(\s*'(\w+)'/g)])
  .map(([, code]) => code);

test.each(Object.entries(PROVOCATIONS))(
  'the example of %s is the body that the service sends',
  async (code, provoke) => {
    const answer = await provoke();
    expect(answer.json).toEqual(examples[code]?.value);
    expect([answer.json.code, violations(answer, REQUESTS)]).toEqual([code, []]);
  },
);

test('there is no other example', () => {
  const others = [...OF_MODULES, ...OF_ROWS].filter((code) => !(code in PROVOCATIONS));
  const found = Object.keys(examples).filter((code) => !OF_FEATURES.includes(code));
  expect(found.sort()).toEqual([...new Set([...Object.keys(PROVOCATIONS), ...others])].sort());
});

test('a script is told 503 under overload: its preflight request is granted', async () => {
  const slow = app.client.get('/v1/test-slow');
  const { waiting } = app.nest.get(TestSlowController);
  await until(() => waiting.length === 1);
  const asked = { origin: ORIGIN, 'access-control-request-method': 'POST' };
  expect((await app.client.send('OPTIONS', '/v1/pets', { apiKey: null, headers: asked })).status).toBe(204);
  const answer = await app.client.send('POST', '/v1/pets', { apiKey: null, headers: { origin: ORIGIN }, body: '{}' });
  expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([503, ORIGIN]);
  // Other origins get no more than without CORS.
  const foreign = { ...asked, origin: 'https://evil.example' };
  expect((await app.client.send('OPTIONS', '/v1/pets', { apiKey: null, headers: foreign })).status).toBe(503);
  waiting.pop()?.();
  expect((await slow).status).toBe(200);
});

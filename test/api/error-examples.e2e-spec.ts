import { Controller, Get, Module } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { ApiKeysService, Public } from '#api-keys';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { rawRequest } from '../support/raw-request.js';

/* Each error's example in the document is what the service sends. */

/** Ends the request that `hold` keeps in flight. */
let release: () => void;

@Public()
@Controller('test-errors')
class TestErrorsController {
  constructor(private readonly dataSource: DataSource) {}

  @Get('hold')
  async hold(): Promise<void> {
    await new Promise<void>((resolve) => (release = resolve));
  }

  @Get('slow')
  async slow(): Promise<void> {
    await this.dataSource.query(`DO $$ BEGIN RAISE 'secret internals' USING ERRCODE = '57014'; END $$`);
  }

  @Get('bug')
  bug(): void {
    throw new TypeError('secret internals');
  }
}

@Module({ controllers: [TestErrorsController] })
class ErrorsModule {}

interface Example {
  value: { code: string; message: string; status: number };
}

let app: TestApp;
let keys: ApiKeysService;
/** The examples by code, including those of single operations. */
let examples: Record<string, Example>;
beforeAll(async () => {
  app = await createTestApp({
    features: [ErrorsModule],
    settings: { REQUEST_TIMEOUT_MS: '300', MAX_REQUESTS_IN_FLIGHT: '1' },
  });
  keys = app.nest.get(ApiKeysService);
  const document = (await app.client.get('/openapi.json')).json as {
    components: { examples: Record<string, Example> };
    paths: Record<'/pets/{petId}', { get: { responses: Record<410, { content: Record<string, object> }> } }>;
  };
  const removed = document.paths['/pets/{petId}'].get.responses[410].content['application/json'] as {
    examples: Record<string, Example>;
  };
  examples = { ...document.components.examples, ...removed.examples };
});
afterAll(() => app.close());

const raw = async (bytes: string): Promise<unknown> =>
  JSON.parse((await rawRequest(app.port, bytes)).split('\r\n\r\n')[1] ?? '');

async function newKey(client: string, expiresAt?: Date): Promise<{ id: string; secret: string }> {
  const { key, secret } = await keys.create({ client, expiresAt });
  return { id: String(key.id), secret };
}

const PET = { name: 'Rex', categoryId: 7 };
const create = (body: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> =>
  app.client.post('/v1/pets', body, { headers });

/** For each error, a request that causes it; returns the answer or its body. */
const PROVOCATIONS: Record<string, () => Promise<unknown>> = {
  malformed_json: () => create('{"name":'),
  missing_body: () => app.client.send('POST', '/v1/pets'),
  validation_failed: () => create({ categoryId: 7 }),
  invalid_parameter: () => app.client.get('/v1/pets?limit=0'),
  invalid_cursor: () => app.client.get('/v1/pets?cursor=x'),
  invalid_idempotency_key: () => create(PET, { 'idempotency-key': '' }),
  bad_request: () => raw('GARBAGE\r\n\r\n'),
  missing_api_key: () => app.client.get('/v1/pets', { apiKey: null }),
  invalid_api_key: () => app.client.get('/v1/pets', { apiKey: 'x'.repeat(30) }),
  expired_api_key: async () => {
    const { secret } = await newKey('expired', new Date(Date.now() - 1));
    return app.client.get('/v1/pets', { apiKey: secret });
  },
  revoked_api_key: async () => {
    const { id, secret } = await newKey('revoked');
    await keys.revoke(id);
    return app.client.get('/v1/pets', { apiKey: secret });
  },
  insufficient_scope: () => app.client.get('/metrics'),
  pet_not_found: () => app.client.get('/v1/pets/0'),
  route_not_found: () => app.client.get('/v1/unknown'),
  method_not_allowed: () => app.client.send('DELETE', '/v1/pets'),
  request_timeout: () => raw('GET /v1/pets HTTP/1.1\r\nHost: x\r\n'),
  operation_removed: async () => {
    app.clock.travelTo('2030-12-05T00:00:00Z');
    const answer = await app.client.get('/v1/pets/1');
    app.clock.comeBack();
    return answer;
  },
  body_too_large: () => create('x'.repeat(65_537)),
  uri_too_long: () => app.client.get(`/v1/pets?${'x'.repeat(8_192)}`),
  unsupported_media_type: () => create('{}', { 'content-type': 'text/plain' }),
  expectation_failed: () => raw('POST /v1/pets HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n'),
  idempotency_key_reused: async () => {
    await create(PET, { 'idempotency-key': 'reused' });
    return create({ ...PET, name: 'Tom' }, { 'idempotency-key': 'reused' });
  },
  rate_limited: async () => {
    const { secret } = await newKey('busy');
    await keys.limit('busy', 60);
    app.clock.travelTo(Date.now());
    let answer = await app.client.get('/v1/pets', { apiKey: secret });
    for (let call = 1; call <= 60; call++) answer = await app.client.get('/v1/pets', { apiKey: secret });
    app.clock.comeBack();
    return answer;
  },
  headers_too_large: () => raw(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`),
  internal_error: () => app.client.get('/v1/test-errors/bug'),
  took_too_long: () => app.client.get('/v1/test-errors/slow', { expects500: true }),
  unavailable: async () => {
    const held = app.client.get('/v1/test-errors/hold');
    while ((release as unknown) === undefined) await sleep(5);
    const answer = await app.client.get('/v1/pets');
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

test.each(Object.entries(PROVOCATIONS))(
  'the example of %s is the body that the service sends',
  async (code, provoke) => {
    const answer = (await provoke()) as HttpAnswer | object;
    const sent = 'json' in answer ? answer.json : answer;
    expect(sent).toEqual(examples[code]?.value);
    expect(sent).toMatchObject({ code });
  },
);

test('there is no other example', () => {
  expect(Object.keys(examples).sort()).toEqual([...Object.keys(PROVOCATIONS), ...OF_MODULES].sort());
});

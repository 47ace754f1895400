import { Controller, Get, Module } from '@nestjs/common';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '#access';
import { Public } from '#operations';
import { PETS, REQUESTS } from '../../contract/rows.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

/* Each error's example in the document is what the service sends: here those that no row of `contract/` can cause. */

@Public()
@Controller('test-errors')
class TestErrorsController {
  constructor(private readonly dataSource: DataSource) {}

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
/** The examples by code, including those of single operations. */
let examples: Record<string, Example>;
beforeAll(async () => {
  app = await createTestApp({
    features: [ErrorsModule, SlowModule],
    settings: { MAX_REQUESTS_IN_FLIGHT: '1', RATE_LIMIT_PER_MINUTE: '60' },
  });
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
  internal_error: () => app.client.get('/v1/test-errors/bug', { expects500: true }),
  took_too_long: () => app.client.get('/v1/test-errors/slow', { expects500: true }),
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
    const { json } = await provoke();
    expect(json).toEqual(examples[code]?.value);
    expect(json).toMatchObject({ code });
  },
);

test('there is no other example', () => {
  const others = [...OF_MODULES, ...OF_ROWS].filter((code) => !(code in PROVOCATIONS));
  const found = Object.keys(examples).filter((code) => !OF_FEATURES.includes(code));
  expect(found.sort()).toEqual([...new Set([...Object.keys(PROVOCATIONS), ...others])].sort());
});

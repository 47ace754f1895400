import { BadGatewayException, InternalServerErrorException, Module, Param } from '@nestjs/common';
import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { DataSource } from 'typeorm';
import { ApiKeysService, ApiKeyVerifier } from '#access';
import { Database } from '#postgres';
import { violations } from '../../contract/judge.js';
import { REQUESTS } from '../../contract/rows.js';
import { createApiKey, hashApiKey } from '../../libs/access/src/api-key-format.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* What `contract/` promises of every response, for responses that none of its rows can cause. */

/** Everything that can fail inside, each with words that must not appear in the response. */
const FAULTS: Record<string, (database: Database, dataSource: DataSource) => unknown> = {
  'unknown-column': (database) => database.write({ name: '', text: 'SELECT hidden_column FROM pet' }, []),
  constraint: (database) =>
    database.write({ name: '', text: `INSERT INTO pet (name, category_id) VALUES ('secret_row', NULL)` }, []),
  cancelled: (database) =>
    database.write({ name: '', text: `DO $$ BEGIN RAISE 'hidden_column' USING ERRCODE = '53100'; END $$` }, []),
  orm: (_, dataSource) => dataSource.query('SELEC $1', ['secret_row']),
  bug: () => (undefined as unknown as { hidden_column: () => void }).hidden_column(),
  file: () => readFile('/hidden_column/file'),
  connection: () => fetch('http://127.0.0.1:1/hidden_column'),
  text: () => thrown('hidden_column'),
  object: () => thrown({ status: 418, message: 'hidden_column', stack: 'hidden_column', expose: true }),
  nest: () => thrown(new InternalServerErrorException('hidden_column')),
  gateway: () => thrown(new BadGatewayException('hidden_column')),
  circle: () => {
    const circle: Record<string, unknown> = {};
    return (circle['hidden_column'] = circle);
  },
};

function thrown(value: unknown): never {
  throw value;
}

const INSIDE = new Handlers('test-inside');
const fail = (fault: string): unknown => FAULTS[fault]?.(app.nest.get(Database), app.nest.get(DataSource));
INSIDE.get(':fault', fail, {}, { parameters: [[Param('fault'), String]] });

@Module({ controllers: [INSIDE.controller] })
class InsideModule {}

const BOOTSTRAP_API_KEY = 'a-bootstrap-key.of~our_own+form/==';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [InsideModule], settings: { BOOTSTRAP_API_KEY } });
});
afterAll(() => app.close());

test('errors inside reveal nothing; the log has their causes, and no value of a row or a statement', async () => {
  const statuses: Record<string, number> = { gateway: 502, cancelled: 503 };
  for (const fault of Object.keys(FAULTS)) {
    const answer = await app.client.get(`/v1/test-inside/${fault}`, { apiKey: null, expects500: true });
    expect([fault, answer.status, violations(answer, REQUESTS)]).toEqual([fault, statuses[fault] ?? 500, []]);
    if (answer.status === 500) {
      const message = 'The service failed; quote the X-Request-Id when you report it.';
      expect(answer.text).toBe(JSON.stringify({ code: 'internal_error', message, status: 500 }));
    }
  }
  expect(app.log.text.match(/hidden_column/g)?.length).toBeGreaterThan(10);
  const line = app.log.lines.find(({ msg }) => msg.includes('null value in column'));
  expect(line?.['error']).toMatchObject({
    code: '23502',
    message: expect.stringContaining('relation "pet"'),
    stack: expect.any(String),
  });
  expect(app.log.text).toContain('SELEC');
  expect(app.log.text).not.toContain('secret_row');
});

test('keys are found by their SHA-256: memory holds no token, so that no time depends on the characters of a key', async () => {
  const almost = `${app.apiKey.slice(0, 43)}${createApiKey('pets_').slice(43)}`;
  await app.client.get('/v1/pets');
  for (const apiKey of [almost, createApiKey('pets_'), 'an-unknown-key-of-another-form']) {
    expect((await app.client.get('/v1/pets', { apiKey })).status).toBe(401);
  }
  const { knownKeys } = app.nest.get<unknown>(ApiKeyVerifier) as Record<string, Map<string, unknown>>;
  const hashes = [...(knownKeys?.keys() ?? [])];
  expect(hashes).not.toEqual([]);
  for (const hash of hashes) expect(Buffer.from(hash, 'binary')).toHaveLength(32);
  const remembered = inspect([...(knownKeys?.values() ?? [])], { depth: null });
  expect(remembered).toContain('test-client');
  expect(remembered).not.toContain(app.apiKey.slice(0, 20));
});

test('401 invalid_api_key: a wrong checksum is refused without asking the database', async () => {
  const wrong = app.apiKey.slice(0, -1) + (app.apiKey.endsWith('0') ? '1' : '0');
  expect(() => app.nest.get(ApiKeyVerifier).verify(wrong)).toThrow('The API key is not known.');
  // A look-up in the database would find the key, because its hash is stored.
  await app.sql(
    `INSERT INTO api_key (client_id, prefix, hash, scopes) SELECT min(id), 'x', $1, '{pets:read}' FROM client`,
    [hashApiKey(wrong)],
  );
  expect((await app.client.get('/v1/pets', { apiKey: wrong })).json).toMatchObject({ code: 'invalid_api_key' });
});

test('a key is refused from the millisecond of its expiry on', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000);
  const { secret } = await app.nest.get(ApiKeysService).create({ client: 'temporary', expiresAt });
  app.clock.travelTo(expiresAt.getTime() - 1);
  expect((await app.client.get('/v1/pets', { apiKey: secret })).status).toBe(200);
  app.clock.travelTo(expiresAt);
  const answer = await app.client.get('/v1/pets', { apiKey: secret });
  app.clock.comeBack();
  expect(answer.json).toMatchObject({ code: 'expired_api_key', status: 401 });
  expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
});

test('BOOTSTRAP_API_KEY exists from the start on, with the default scopes', async () => {
  expect(
    (await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { apiKey: BOOTSTRAP_API_KEY })).status,
  ).toBe(201);
  expect((await app.client.get('/metrics', { apiKey: BOOTSTRAP_API_KEY })).status).toBe(403);
});

test('only the SHA-256 of a key is stored', async () => {
  const rows = await app.sql(`SELECT row_to_json(api_key)::text FROM api_key`, []);
  for (const secret of [app.apiKey, BOOTSTRAP_API_KEY]) {
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(JSON.stringify(rows)).toContain(hashApiKey(secret).toString('hex'));
  }
});

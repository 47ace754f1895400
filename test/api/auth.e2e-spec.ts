import { ApiKeysService, ApiKeyVerifier } from '#access';
import { hashApiKey } from '../../libs/access/src/api-key-format.js';
import { createTestApp, type TestApp } from '../support/app.js';

let app: TestApp;
let keys: ApiKeysService;
const BOOTSTRAP_API_KEY = 'a-bootstrap-key.of~our_own+form/==';

beforeAll(async () => {
  app = await createTestApp({ settings: { BOOTSTRAP_API_KEY } });
  keys = app.nest.get(ApiKeysService);
});
afterAll(() => app.close());

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
  const { secret } = await keys.create({ client: 'temporary', expiresAt });
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

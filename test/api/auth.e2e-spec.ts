import { ApiKeysService, ApiKeyVerifier } from '#api-keys';
import { hashApiKey } from '../../libs/api-keys/src/api-key-format.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { HttpClient } from '../support/http-client.js';
import { rawRequest } from '../support/raw-request.js';

let app: TestApp;
let keys: ApiKeysService;
const BOOTSTRAP_API_KEY = 'a-bootstrap-key.of~our_own+form/==';

beforeAll(async () => {
  app = await createTestApp({ settings: { BOOTSTRAP_API_KEY } });
  keys = app.nest.get(ApiKeysService);
});
afterAll(() => app.close());

const OPERATIONS: [method: string, path: string, body?: unknown][] = [
  ['GET', '/v1/pets'],
  ['POST', '/v1/pets', { name: 'Rex', categoryId: 7 }],
  ['GET', '/v1/pets/1'],
];

describe.each(OPERATIONS)('%s %s', (method, path, body) => {
  test('401 missing_api_key: no Authorization', async () => {
    const answer = await app.client.send(method, path, { body, apiKey: null });
    expect([answer.status, answer.json]).toEqual([
      401,
      { code: 'missing_api_key', message: 'Send an API key as Authorization: Bearer <API_KEY>, once.', status: 401 },
    ]);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="petstore"');
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test.each(['Basic cGV0czpwZXRz', 'Bearer', 'Bearer ', 'Bearer a b', 'pets_secret', 'Bearer ä', ''])(
    '401 missing_api_key: Authorization: %s',
    async (authorization) => {
      const answer = await app.client.send(method, path, {
        body,
        apiKey: null,
        headers: { authorization: Buffer.from(authorization).toString('latin1') },
      });
      expect(answer.json).toMatchObject({ code: 'missing_api_key', status: 401 });
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="petstore"');
    },
  );

  test('401 invalid_api_key: a key that is not known', async () => {
    const answer = await app.client.send(method, path, { body, apiKey: 'unknown-key-unknown-key' });
    expect(answer.json).toEqual({ code: 'invalid_api_key', message: 'The API key is not known.', status: 401 });
    expect(answer.headers['www-authenticate']).toBe(
      'Bearer realm="petstore", error="invalid_token", error_description="The API key is not known"',
    );
  });
});

test('401 missing_api_key: two Authorization headers, valid ones', async () => {
  const credentials = `Authorization: Bearer ${app.apiKey}\r\n`;
  const answer = await rawRequest(
    app.port,
    `GET /v1/pets HTTP/1.1\r\nHost: x\r\n${credentials}${credentials}Connection: close\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(answer).toContain('"code":"missing_api_key"');
});

test('a key in the query or in another header is no key', async () => {
  const headers = { 'x-api-key': app.apiKey, 'proxy-authorization': `Bearer ${app.apiKey}` };
  expect((await app.client.get(`/v1/pets?access_token=${app.apiKey}`, { apiKey: null, headers })).status).toBe(401);
});

test.each(['bearer', 'BEARER', 'Bearer  '])('200: the scheme is case-insensitive: %s', async (scheme) => {
  const headers = { authorization: `${scheme} ${app.apiKey}` };
  expect((await app.client.get('/v1/pets', { apiKey: null, headers })).status).toBe(200);
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
  const { secret } = await keys.create({ client: 'temporary', expiresAt });
  app.clock.travelTo(expiresAt.getTime() - 1);
  expect((await app.client.get('/v1/pets', { apiKey: secret })).status).toBe(200);
  app.clock.travelTo(expiresAt);
  const answer = await app.client.get('/v1/pets', { apiKey: secret });
  app.clock.comeBack();
  expect(answer.json).toMatchObject({ code: 'expired_api_key', status: 401 });
  expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
});

test('403 insufficient_scope with the challenge of RFC 6750', async () => {
  const { secret } = await keys.create({ client: 'reader', scopes: ['pets:read'] });
  const reader = new HttpClient(app.origin, secret);
  expect((await reader.get('/v1/pets')).status).toBe(200);
  const answer = await reader.post('/v1/pets', 'not even JSON');
  expect([answer.status, answer.json]).toEqual([
    403,
    { code: 'insufficient_scope', message: 'The API key lacks the scope pets:write.', status: 403 },
  ]);
  expect(answer.headers['www-authenticate']).toBe(
    'Bearer realm="petstore", error="insufficient_scope", scope="pets:write"',
  );
});

test('BOOTSTRAP_API_KEY exists from the start on, with the default scopes', async () => {
  expect(
    (await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { apiKey: BOOTSTRAP_API_KEY })).status,
  ).toBe(201);
  expect((await app.client.get('/metrics', { apiKey: BOOTSTRAP_API_KEY })).status).toBe(403);
  await keys.ensureBootstrapKey('a'.repeat(20));
  expect(JSON.stringify(app.log.lines)).toContain('BOOTSTRAP_API_KEY repeats a few characters');
});

test('only the SHA-256 of a key is stored', async () => {
  const rows = await app.sql(`SELECT row_to_json(api_key)::text FROM api_key`, []);
  for (const secret of [app.apiKey, BOOTSTRAP_API_KEY]) {
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(JSON.stringify(rows)).toContain(hashApiKey(secret).toString('hex'));
  }
});

describe('a request without a key is refused before anything of its body is read', () => {
  const head = 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

  test('401 for a megabyte that is sent without waiting, and the answer arrives', async () => {
    const answer = await app.client.post('/v1/pets', 'x'.repeat(1024 * 1024), { apiKey: null });
    expect(answer.json).toMatchObject({ code: 'missing_api_key' });
    expect(answer.headers.connection).toBe('close');
  });

  test('401 at once for a body that never comes', async () => {
    const startedAt = performance.now();
    const answer = await rawRequest(app.port, `${head}Content-Length: 1000\r\n\r\n{`, { until: '"status":401}' });
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    // The limit for a whole request is 30 s; "at once" is far below it.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  test('a final 401, and no 100, for Expect: 100-continue', async () => {
    const answer = await rawRequest(app.port, `${head}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).not.toContain('100 Continue');
  });

  test('100 and then 201 for Expect: 100-continue with a key', async () => {
    const body = '{"name":"Rex","categoryId":7}';
    const headers = `Authorization: Bearer ${app.apiKey}\r\nConnection: close\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
    const answer = await rawRequest(app.port, head + headers, {
      then: { after: 'HTTP/1.1 100 Continue\r\n\r\n', send: body },
    });
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });
});

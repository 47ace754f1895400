import { createTestApp, type TestApp } from '../support/app.js';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ settings: { CORS_ORIGINS: 'https://app.example.com,http://localhost:5173' } });
});
afterAll(() => app.close());

test('CORS: a preflight from a known origin is allowed and answered 204 with Allow', async () => {
  const headers = {
    origin: 'https://app.example.com',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type,idempotency-key',
  };
  const answer = await app.client.send('OPTIONS', '/v1/pets', { apiKey: null, headers });
  expect(answer.status).toBe(204);
  expect(answer.headers).toMatchObject({
    allow: 'GET, HEAD, OPTIONS, POST',
    'access-control-allow-origin': 'https://app.example.com',
    'access-control-allow-headers': 'authorization,content-type,idempotency-key',
  });
  expect(answer.headers['access-control-allow-methods']).toContain('POST');
});

test('CORS: answers name a known origin, and Vary lists Origin and Authorization; unknown origins get nothing', async () => {
  const known = await app.client.get('/v1/pets', { headers: { origin: 'http://localhost:5173' } });
  expect(known.headers).toMatchObject({
    'access-control-allow-origin': 'http://localhost:5173',
    vary: 'Origin, Authorization',
    'access-control-expose-headers': expect.stringMatching(/\bIdempotent-Replayed\b.*\bLink\b/) as string,
  });
  const unknown = await app.client.get('/v1/pets', { headers: { origin: 'https://evil.example' } });
  expect(unknown.headers['access-control-allow-origin']).toBeUndefined();
  const refused = await app.client.get('/v1/pets', { apiKey: null, headers: { origin: 'http://localhost:5173' } });
  expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, 'http://localhost:5173']);
});

test('CORS is off unless CORS_ORIGINS is set', async () => {
  const off = await createTestApp();
  const answer = await off.client.get('/v1/pets', { headers: { origin: 'https://app.example.com' } });
  expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  await off.close();
});

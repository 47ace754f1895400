import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { CreateVisit1795300000000 } from '../example/visits/1795300000000-create-visit.js';
import { VisitsModule } from '../example/visits/visits.module.js';
import { createTestApp, type TestApp } from '../support/app.js';

let app: TestApp;
let apiKey: string;

beforeAll(async () => {
  app = await createTestApp({ modules: [VisitsModule] });
  await app.migrate(new CreateVisit1795300000000());
  const scopes = ['visits:read', 'visits:write'];
  apiKey = (await app.nest.get(ApiKeysService).create({ client: 'clinic', scopes })).secret;
});
afterAll(() => app.close());

const visit = { petId: 9223372036854775807n, reason: 'Vaccination', weightKg: 12.5 };

test('201: a visit is recorded, and listed', async () => {
  const created = await app.client.post('/v1/visits', visit, { apiKey });
  expect([created.status, created.json]).toEqual([201, { id: 1, ...visit }]);
  expect(created.headers['petstore-stability']).toBe('beta');
  expect((await app.client.get('/v1/visits?reason=Vaccination', { apiKey })).json).toEqual([created.json]);
});

test('409 visits_full: an error of its own', async () => {
  for (let count = 0; count < 3; count++) await app.client.post('/v1/visits', { ...visit, petId: 1 }, { apiKey });
  expect((await app.client.post('/v1/visits', { ...visit, petId: 1 }, { apiKey })).json).toEqual({
    code: 'visits_full',
    message: 'An animal may have 3 visits.',
    status: 409,
  });
});

test('400, 401, 403: without a word of its own', async () => {
  const refused = await app.client.post('/v1/visits', { petId: '1', weightKg: -1 }, { apiKey });
  expect(refused.json).toMatchObject({ code: 'validation_failed', status: 400 });
  expect(refused.json.message).toBe(
    'petId must be an integer between -9223372036854775808 and 9223372036854775807, ' +
      'sent as a JSON number, not a string; reason is required; weightKg must be a positive number',
  );
  expect((await app.client.get('/v1/visits?raeson=x', { apiKey })).json.message).toContain("did you mean 'reason'?");
  expect((await app.client.get('/v1/visits', { apiKey: null })).status).toBe(401);
  expect((await app.client.get('/v1/visits')).json).toMatchObject({ code: 'insufficient_scope', status: 403 });
});

test('it is in the document', async () => {
  const document = JSON.parse((await app.client.get('/openapi.json')).text) as { paths: Record<string, any> };
  const operations = document.paths['/visits'] as Record<string, { responses: object }>;
  expect(Object.keys(operations)).toEqual(['get', 'post']);
  expect(Object.keys(operations['post']?.responses ?? {})).toEqual(
    expect.arrayContaining(['201', '400', '401', '403', '409', '415']),
  );
});

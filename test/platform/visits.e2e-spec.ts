import { ApiKeysService } from '#access';
import { CreateVisit1795300000000 } from '../example/visits/1795300000000-create-visit.js';
import { VisitsModule } from '../example/visits/visits.module.js';
import { createTestApp, type TestApp } from '../support/app.js';

let app: TestApp;
let apiKey: string;

beforeAll(async () => {
  app = await createTestApp({ features: [VisitsModule] });
  await app.migrate(new CreateVisit1795300000000());
  const scopes = ['visits:read', 'visits:write'];
  apiKey = (await app.nest.get(ApiKeysService).create({ client: 'clinic', scopes })).secret;
});
afterAll(() => app.close());

const visit = { petId: 9223372036854775807n, reason: 'Vaccination', weightKg: 12.5 };

test('201: a visit is stored and listed, for a key with the scopes of the module', async () => {
  const created = await app.client.post('/v1/visits', visit, { apiKey });
  expect([created.status, created.json]).toEqual([201, { id: 1, ...visit }]);
  await app.client.post('/v1/visits', visit, { apiKey });
  const list = await app.client.get('/v1/visits?reason=Vaccination&limit=1', { apiKey });
  expect([list.status, list.json]).toEqual([200, [created.json]]);
  expect(list.headers['link']).toMatch(/\/v1\/visits\?limit=1&reason=Vaccination&cursor=[\w-]+>; rel="next"$/);
  expect((await app.client.get('/v1/visits')).json).toMatchObject({ code: 'insufficient_scope', status: 403 });
});

test('400: what PostgreSQL or a double cannot hold', async () => {
  const refused = await app.client.get('/v1/visits?reason=a%00b', { apiKey });
  expect(refused.json.message).toBe('reason must be a string without NUL or unpaired surrogates');
  const weigh = async (weightKg: string): Promise<unknown> =>
    (await app.client.post('/v1/visits', `{"petId":2,"reason":"ill","weightKg":${weightKg}}`, { apiKey }))
      .json as unknown;
  expect(await weigh('1e40')).toMatchObject({ weightKg: 1e40 });
  expect(await weigh('1e400')).toMatchObject({ message: 'weightKg must be a number that a double can hold' });
});

test("409 visits_full: the module's own error", async () => {
  for (let count = 0; count < 3; count++) await app.client.post('/v1/visits', { ...visit, petId: 1 }, { apiKey });
  expect((await app.client.post('/v1/visits', { ...visit, petId: 1 }, { apiKey })).json).toEqual({
    code: 'visits_full',
    message: 'A pet may have 3 visits.',
    status: 409,
  });
});

import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
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

test('201: a visit is stored and listed', async () => {
  const created = await app.client.post('/v1/visits', visit, { apiKey });
  expect([created.status, created.json]).toEqual([201, { id: 1, ...visit }]);
  expect(created.headers['petstore-stability']).toBe('beta');
  expect((await app.client.get('/v1/visits?reason=Vaccination', { apiKey })).json).toEqual([created.json]);
});

test('200: a list has pages, whose cursors belong to their filter', async () => {
  for (const petId of [11, 12, 13]) {
    await app.client.post('/v1/visits', { ...visit, petId, reason: 'Nail & claw' }, { apiKey });
  }
  const first = await app.client.get('/v1/visits?reason=Nail%20%26%20claw&limit=2', { apiKey });
  expect((first.json as unknown as { petId: number }[]).map(({ petId }) => petId)).toEqual([11, 12]);
  const [, next = ''] =
    /^<http:\/\/localhost:3000(\/v1\/visits\?reason=Nail\+%26\+claw&limit=2&cursor=[\w-]+)>; rel="next"$/.exec(
      String(first.headers['link']),
    ) ?? [];
  const last = await app.client.get(next, { apiKey });
  expect((last.json as unknown as { petId: number }[]).map(({ petId }) => petId)).toEqual([13]);
  expect(last.headers['link']).toBeUndefined();
  const other = await app.client.get(next.replace(/reason=[^&]+&/, ''), { apiKey });
  expect([other.status, other.json.code, other.json.message]).toEqual([
    400,
    'invalid_cursor',
    'cursor belongs to a list with another reason; send the reason it was made with',
  ]);
});

test("409 visits_full: the module's own error", async () => {
  for (let count = 0; count < 3; count++) await app.client.post('/v1/visits', { ...visit, petId: 1 }, { apiKey });
  expect((await app.client.post('/v1/visits', { ...visit, petId: 1 }, { apiKey })).json).toEqual({
    code: 'visits_full',
    message: 'An animal may have 3 visits.',
    status: 409,
  });
});

test('400, 401 and 403 come from the platform, without code of the module', async () => {
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

test('the document has the operations of the module', async () => {
  const document = JSON.parse((await app.client.get('/openapi.json')).text) as { paths: Record<string, any> };
  const operations = document.paths['/visits'] as Record<string, { responses: object }>;
  expect(Object.keys(operations)).toEqual(['get', 'post']);
  expect(operations['get']).toMatchObject({
    responses: {
      200: {
        headers: { Link: { $ref: '#/components/headers/NextPage' } },
        content: {
          'application/json': {
            schema: { type: 'array', maxItems: 100, items: { $ref: '#/components/schemas/Visit' } },
          },
        },
      },
    },
  });
  expect(JSON.stringify(operations['get']?.responses)).toContain('invalid_cursor');
  expect(Object.keys(operations['post']?.responses ?? {})).toEqual(
    expect.arrayContaining(['201', '400', '401', '403', '409', '415']),
  );
});

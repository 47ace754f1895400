import { ApiKeysService } from '#platform';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

const PATH = '/v1/sample-things';

let app: TestApp;
let apiKey: string;

beforeAll(async () => {
  app = await createTestApp();
  const scopes = ['sample-things:read', 'sample-things:write', 'sample-things:delete'];
  apiKey = (await app.nest.get(ApiKeysService).create({ client: 'sample-things-client', scopes })).secret;
});
afterAll(() => app.close());

/** Adds one. */
function add(name: string, headers = {}): Promise<HttpAnswer> {
  return app.client.post(PATH, { name }, { apiKey, headers });
}

/** The ids of one, or of a page. */
function idsOf({ json }: HttpAnswer): number[] {
  return ([json].flat() as { id: number }[]).map(({ id }) => id);
}

test('201: one is added, and found at its Location', async () => {
  const created = await add('First');
  expect([created.status, created.json]).toEqual([201, { id: expect.any(Number), name: 'First' }]);
  const { pathname } = new URL(created.headers.location ?? '');
  expect(pathname).toBe(`${PATH}/${created.json.id}`);
  const found = await app.client.get(pathname, { apiKey });
  expect([found.status, found.json]).toEqual([200, created.json]);
});

test('201: the same Idempotency-Key adds one, however often it is sent', async () => {
  const headers = { 'idempotency-key': 'the-same' };
  const first = await add('Once', headers);
  const second = await add('Once', headers);
  expect([second.status, second.json, second.headers.location]).toEqual([201, first.json, first.headers.location]);
  expect(second.headers['idempotent-replayed']).toBe('true');
  expect((await add('Another', headers)).json).toMatchObject({ code: 'idempotency_key_reused', status: 422 });
});

test('200: the list in pages, by ascending id', async () => {
  const added = [await add('One'), await add('Two'), await add('Three')].flatMap(idsOf);
  const listed: number[] = [];
  for (let path: string | undefined = `${PATH}?limit=2`; path !== undefined;) {
    const page: HttpAnswer = await app.client.get(path, { apiKey });
    expect(page.status).toBe(200);
    listed.push(...idsOf(page));
    const [, next] = /<([^>]+)>; rel="next"/.exec(String(page.headers.link)) ?? [];
    path = next?.slice(next.indexOf(PATH));
  }
  expect(listed.slice(-3)).toEqual(added);
  expect(listed).toEqual([...new Set(listed)].sort((one, other) => one - other));
});

test('204: one is deleted, and then 404', async () => {
  const path = `${PATH}/${(await add('Gone')).json.id}`;
  const deleted = await app.client.send('DELETE', path, { apiKey });
  expect([deleted.status, deleted.text]).toEqual([204, '']);
  for (const method of ['GET', 'DELETE']) {
    const answer = await app.client.send(method, path, { apiKey });
    expect([method, answer.json]).toMatchObject([method, { code: 'sample_thing_not_found', status: 404 }]);
  }
});

test('400, 401, 403 and 404: input, key and scopes are checked', async () => {
  expect((await app.client.post(PATH, {}, { apiKey })).json).toMatchObject({
    status: 400,
    message: 'name is required',
  });
  expect((await app.client.get(`${PATH}/one`, { apiKey })).status).toBe(404);
  expect((await app.client.get(`${PATH}?cursor=made-up`, { apiKey })).json).toMatchObject({ code: 'invalid_cursor' });
  expect((await app.client.get(PATH, { apiKey: null })).status).toBe(401);
  expect((await app.client.get(PATH)).json).toMatchObject({ code: 'insufficient_scope', status: 403 });
  expect((await app.client.post(PATH, { name: 'First' })).json).toMatchObject({ code: 'insufficient_scope' });
});

import { ApiKeysService } from '#access';
import { createTestApp, type TestApp } from '../support/app.js';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

test('503 unavailable: readiness names a missing migration, or a newer one that is not backward compatible; liveness stays 200', async () => {
  const other = await createTestApp();
  const [removed = []] = await other.sql(
    'DELETE FROM schema_migration WHERE id = (SELECT max(id) FROM schema_migration) RETURNING timestamp, name, backward_compatible',
  );
  const ready = await other.client.get('/health/ready', { apiKey: null });
  expect(ready.json).toEqual({
    code: 'unavailable',
    message: `The database schema is outdated: it lacks ${String(removed?.[1])}. Run 'npm run petstore -- migrate'.`,
    status: 503,
  });
  expect(ready.headers['retry-after']).toBe('1');
  expect(other.log.requests.at(-1)).toMatchObject({ operation: 'checkReadiness', cause: 'schema' });
  expect((await other.client.get('/health/live', { apiKey: null })).status).toBe(200);

  let now = performance.now();
  const clock = import.meta.jest.spyOn(performance, 'now').mockImplementation(() => now);
  const next = async (): Promise<unknown> => {
    // Readiness is cached for one second.
    now += 1_000;
    const { status, json } = await other.client.get('/health/ready', { apiKey: null });
    return [status, (json as { message?: string }).message];
  };
  const apply = (...migration: unknown[]): Promise<unknown> =>
    other.sql('INSERT INTO schema_migration (timestamp, name, backward_compatible) VALUES ($1, $2, $3)', migration);
  await apply(...removed);
  await apply(4102444800000, 'AddOwner4102444800000', true);
  expect(await next()).toEqual([200, undefined]);
  await apply(4102444800001, 'DropName4102444800001', false);
  expect(await next()).toEqual([
    503,
    expect.stringMatching(
      / newer than this version and not backward compatible: it has DropName4102444800001\. Start /,
    ),
  ]);
  clock.mockRestore();
  await other.close();
});

test('/metrics counts by operation and status', async () => {
  const { secret } = await app.nest.get(ApiKeysService).create({ client: 'prometheus', scopes: ['metrics:read'] });
  for (const query of ['', '?limit=0']) await app.client.get(`/v1/pets${query}`);
  const { text } = await app.client.get('/metrics', { apiKey: secret });
  const requests = 'petstore_http_request_duration_seconds_count{operation="listPets",method="GET"';
  for (const status of [200, 400]) expect(text).toContain(`\n${requests},status="${status}"} `);
  for (const line of [
    'petstore_database_silent 0',
    'petstore_database_waiting_statements 0',
    'petstore_log_lines_dropped_total 0',
  ])
    expect(text).toContain(`\n${line}\n`);
  expect(text).toMatch(/^petstore_database_connections\{state="idle"\} [1-9]\d*$/m);
});

test('each request has one log line with request id, operation, client, status, code and duration', async () => {
  await app.client.get('/v1/pets?limit=0', { headers: { 'x-request-id': 'log-me' } });
  expect(app.log.requests.filter((line) => line['requestId'] === 'log-me')).toEqual([
    expect.objectContaining({
      level: 30,
      operation: 'listPets',
      client: 'test-client',
      method: 'GET',
      status: 400,
      code: 'invalid_parameter',
      durationMs: expect.any(Number) as number,
    }),
  ]);
});

test('a health check that succeeds has a line at the level debug alone', async () => {
  const quiet = await createTestApp({ settings: { LOG_LEVEL: 'info' } });
  for (const { client } of [app, quiet])
    for (const path of ['/health/live', '/health/ready'])
      await client.get(path, { headers: { 'x-request-id': 'check' } });
  const lines = [app, quiet].map(({ log }) => log.requests.filter((line) => line['requestId'] === 'check').length);
  await quiet.close();
  expect(lines).toEqual([2, 0]);
});

test('a client whose name JSON must escape has its line', async () => {
  const { secret } = await app.nest.get(ApiKeysService).create({ client: 'a "b" \\é' });
  await app.client.get('/v1/pets', { apiKey: secret, headers: { 'x-request-id': 'escaped' } });
  expect(app.log.requests.find((line) => line['requestId'] === 'escaped')).toMatchObject({ client: 'a "b" \\é' });
});

test('the log contains no API key, header field, body or query', async () => {
  const headers = { 'x-secret': 'secret-header-value', cookie: 'secret-cookie' };
  await app.client.post('/v1/pets', { name: 'secret-body-value', categoryId: 7 }, { headers });
  await app.client.get('/v1/pets?status=secret-query-value', { headers });
  await app.client.get('/v1/pets', { apiKey: 'secret-unknown-key-0000' });
  expect(app.log.requests.length).toBeGreaterThan(2);
  for (const secret of [app.apiKey, 'secret-']) {
    expect(app.log.text).not.toContain(secret);
  }
});

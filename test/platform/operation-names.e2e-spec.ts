import { All, Controller, Get, Module, Post, Version, VERSION_NEUTRAL } from '@nestjs/common';
import { Metrics } from '#ops';
import { Deprecated, Public, RequireScopes } from '#operations';
import { createTestApp, type TestApp, writeUsage } from '../support/app.js';

/** Base class of two controllers, whose handlers therefore have the same names. */
@RequireScopes()
class Handlers {
  @Get(['', 'all'])
  findNames(): void {}

  @Post()
  addName(): void {}

  @Get('old')
  @Deprecated({ since: '2026-01-01Z', sunset: '2999-01-01Z', successor: '/new', replacement: 'Use it.' })
  findOldNames(): void {}
}

@Controller('test-first-names')
class TestFirstNamesController extends Handlers {}

@Controller('test-last-names')
class TestLastNamesController extends Handlers {
  @Get('next')
  @Version('2')
  listPets(): void {}

  @All('any')
  answerAll(): void {}
}

@Public()
@Controller({ path: 'test-outside', version: VERSION_NEUTRAL })
class TestOutsideController {
  @Get()
  checkLiveness(): void {}
}

@Module({ controllers: [TestFirstNamesController, TestLastNamesController, TestOutsideController] })
class NamesModule {}

/** Method, path, and the name of the operation. */
const CALLS = [
  ['GET', '/v1/pets', 'listPets'],
  ['GET', '/v1/test-first-names', 'findNames'],
  ['GET', '/v1/test-first-names/all', 'findNames'],
  ['POST', '/v1/test-first-names', 'addName'],
  ['GET', '/v1/test-first-names/old', 'findOldNames'],
  ['GET', '/v1/test-last-names', 'TestLastNamesController_findNames'],
  ['POST', '/v1/test-last-names', 'TestLastNamesController_addName'],
  ['GET', '/v1/test-last-names/old', 'TestLastNamesController_findOldNames'],
  ['GET', '/v2/test-last-names/next', 'TestLastNamesController_listPets'],
  ['DELETE', '/v1/test-last-names/any', 'answerAll'],
  ['GET', '/test-outside', 'checkLiveness'],
  ['GET', '/health/live', 'HealthController_checkLiveness'],
] as const;

let app: TestApp;
beforeAll(async () => (app = await createTestApp({ features: [NamesModule] })));
afterAll(() => app.close());

test.each(CALLS)('log and metrics of %s %s have the operation %s', async (method, path, operation) => {
  const { status } = await app.client.send(method, path);
  expect([200, 201]).toContain(status);
  expect(app.log.requests.at(-1)).toMatchObject({ method, operation });
  const metric = app.nest.get(Metrics).registry.getSingleMetric('petstore_http_request_duration_seconds')!;
  const label = expect.objectContaining({ labels: expect.objectContaining({ method, operation }) });
  expect((await metric.get()).values).toContainEqual(label);
});

test('usage is counted under the names of operations', async () => {
  for (const [method, path] of CALLS) await app.client.send(method, path);
  await writeUsage(app);
  const counted = (await app.sql('SELECT DISTINCT operation FROM key_usage')).map(([operation]) => operation);
  const closed = CALLS.map(([, , operation]) => operation).filter((name) => !name.includes('checkLiveness'));
  expect(counted.sort()).toEqual([...new Set(closed)].sort());
});

test('the document has the names of operations as operationIds, each once, and no handler of @All', async () => {
  type Paths = Record<string, Record<string, { operationId?: string }>>;
  const { paths } = (await app.client.get('/openapi.json')).json as { paths: Paths };
  expect(paths).toMatchObject({
    '/pets': { get: { operationId: 'listPets' } },
    '/test-first-names': { get: { operationId: 'findNames' } },
    '/test-first-names/all': { get: { operationId: 'findNames_2' } },
    '/test-last-names/all': { get: { operationId: 'TestLastNamesController_findNames_2' } },
    '/v2/test-last-names/next': { get: { operationId: 'TestLastNamesController_listPets' } },
  });
  expect(paths['/test-last-names/any']).toBeUndefined();
  const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId));
  expect(new Set(ids).size).toBe(ids.length);
});

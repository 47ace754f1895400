import { Controller, Get, Module, ServiceUnavailableException } from '@nestjs/common';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { ApiKeysService } from '#access';
import { RequireScopes } from '#operations';
import { Database } from '#postgres';
import type { PetStoreConfig } from '../support/config.js';
import { createTestApp, type TestApp, writeUsage } from '../support/app.js';
import { SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

/* The metrics that operators need in an emergency: a test causes what a metric counts, and the next scrape shows it. */

@Controller('test-gated')
@RequireScopes()
class TestGatedController {
  constructor(private readonly database: Database) {}

  @Get('slow')
  findSlow(): Promise<unknown> {
    return this.database.read({ name: '', text: 'SELECT pg_sleep(3)::text' }, []);
  }

  @Get('own')
  findOwn(): never {
    throw new ServiceUnavailableException();
  }
}

@Module({ controllers: [TestGatedController] })
class GatedModule {}

/** Starts an application; `scrape` requests its /metrics as a client of its own. */
async function start(
  settings: Record<string, string> = {},
  limits: Partial<PetStoreConfig> = {},
): Promise<{ app: TestApp; scrape: () => Promise<string> }> {
  const app = await createTestApp({ features: [GatedModule, SlowModule], settings, limits });
  const keys = app.nest.get(ApiKeysService);
  const { secret } = await keys.create({ client: 'prometheus', scopes: ['metrics:read'] });
  const scrape = async (): Promise<string> => {
    const { status, text } = await app.client.get('/metrics', { apiKey: secret });
    expect(status).toBe(200);
    return text;
  };
  return { app, scrape };
}

/** The value of a series; 0 if it does not exist yet. */
function valueOf(metrics: string, series: string): number {
  const line = metrics.split('\n').find((text) => text.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

/** Waits until a scrape has this value. */
const reaches = (scrape: () => Promise<string>, series: string, expected: number): Promise<boolean> =>
  until(async () => valueOf(await scrape(), series) === expected);

const UNAVAILABLE = (operation: string, cause: string): string =>
  `petstore_http_unavailable_total{operation="${operation}",cause="${cause}"}`;

describe('an application with small limits', () => {
  let app: TestApp;
  let scrape: () => Promise<string>;
  beforeAll(async () => {
    const settings = { MAX_REQUESTS_IN_FLIGHT: '1', STATEMENT_TIMEOUT_MS: '200' };
    ({ app, scrape } = await start(settings));
  });
  afterAll(() => app.close());

  test('requests in flight and refused requests are counted', async () => {
    expect(valueOf(await scrape(), 'petstore_http_requests_in_flight')).toBe(1);
    expect(valueOf(await scrape(), 'petstore_http_requests_in_flight_limit')).toBe(1);
    const passing = app.client.get('/v1/test-slow');
    // One of the two is the scrape.
    await reaches(scrape, 'petstore_http_requests_in_flight', 2);
    const before = valueOf(await scrape(), UNAVAILABLE('', 'requests_in_flight'));
    // With a known key it would get one of the places that are kept for these.
    const refused = await app.client.get('/v1/pets', { apiKey: null, headers: { 'x-request-id': 'refused-1' } });
    expect(refused.status).toBe(503);
    await reaches(scrape, UNAVAILABLE('', 'requests_in_flight'), before + 1);
    app.nest.get(TestSlowController).waiting.pop()?.();
    expect((await passing).status).toBe(200);
    await reaches(scrape, 'petstore_http_requests_in_flight', 1);
    expect(app.log.requests.filter(({ requestId }) => requestId === 'refused-1')).toEqual([
      expect.objectContaining({ status: 503, cause: 'requests_in_flight' }),
    ]);
  });

  test('503 by cause: an exception of a module', async () => {
    expect((await app.client.get('/v1/test-gated/own')).status).toBe(503);
    await reaches(scrape, UNAVAILABLE('findOwn', 'other'), 1);
  });

  test('500 by cause: a statement that takes too long, without an error in the log', async () => {
    const { json } = await app.client.get('/v1/test-gated/slow', { expects500: true });
    expect(json).toMatchObject({ code: 'took_too_long', status: 500 });
    expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
    await reaches(scrape, UNAVAILABLE('findSlow', 'database_slow'), 1);
  });

  test('petstore_build_info has the versions of the service and of Node.js; without Redis nothing is said of it', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    const metrics = await scrape();
    expect(valueOf(metrics, `petstore_build_info{version="${version}",node_version="${process.version}"}`)).toBe(1);
    expect(metrics).not.toMatch(/petstore_redis_/);
  });
});

test('open connections are counted, and those beyond the limit, which are dropped while the others are served', async () => {
  const { app, scrape } = await start({}, { maxConnections: 5 });
  const sockets: Socket[] = [];
  try {
    expect(valueOf(await scrape(), 'petstore_http_connections')).toBe(1);
    expect(valueOf(await scrape(), 'petstore_http_connections_limit')).toBe(5);
    // With a response each, so that they have been accepted.
    while (sockets.length < 4) {
      const socket = connect(app.port, '127.0.0.1');
      sockets.push(socket);
      socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(socket, 'data');
    }
    await reaches(scrape, 'petstore_http_connections', 5);
    expect(valueOf(await scrape(), 'petstore_http_connections_dropped_total')).toBe(0);
    const dropped = connect(app.port, '127.0.0.1').on('error', () => undefined);
    await once(dropped.resume(), 'close');
    await reaches(scrape, 'petstore_http_connections_dropped_total', 1);
    expect(app.log.text).toMatch(/beyond the limit of 5\./);
  } finally {
    for (const socket of sockets) socket.destroy();
    await app.close();
  }
});

test('METRICS_TOKEN opens /metrics and nothing else, without a client, a limit or usage; an unreachable Redis is shown', async () => {
  const METRICS_TOKEN = 'the-token-of-prometheus+32/characters==';
  const { app, scrape } = await start({ METRICS_TOKEN, RATE_LIMIT_PER_MINUTE: '1', REDIS_URL: 'redis://127.0.0.1:1' });
  const statusOf = async (path: string, apiKey: string): Promise<number> =>
    (await app.client.get(path, { apiKey })).status;
  await scrape();
  for (let scrapes = 0; scrapes < 3; scrapes++) {
    const { status, headers, text } = await app.client.get('/metrics', { apiKey: METRICS_TOKEN });
    expect([status, headers]).toEqual([200, expect.not.objectContaining({ ratelimit: expect.anything() })]);
    expect(valueOf(text, 'petstore_redis_away')).toBe(1);
  }
  expect(app.log.requests.at(-1)).toMatchObject({ operation: 'readMetrics', status: 200 });
  expect(app.log.requests.at(-1)).not.toHaveProperty('client');
  await writeUsage(app);
  // The call of the API key alone.
  expect(await app.sql(`SELECT sum(calls)::int FROM key_usage WHERE operation = 'readMetrics'`)).toEqual([[1]]);

  for (const path of ['/v1/pets', '/v1/test-gated/own']) expect(await statusOf(path, METRICS_TOKEN)).toBe(401);
  const others = [`${METRICS_TOKEN}=`, METRICS_TOKEN.slice(0, -1), METRICS_TOKEN.toUpperCase()];
  for (const other of others) expect(await statusOf('/metrics', other)).toBe(401);
  await app.close();
});

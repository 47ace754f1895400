import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseUrl } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import type { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, type Outcome, percentile, send, tally } from '../support/load.js';
import { freePort } from '../support/programs.js';
import { CHECK_INTERVAL_MS, type Proxy, startProxy } from './support/haproxy.js';
import { createOwnDatabase, rowsOf } from '../support/own-database.js';
import { Services } from './support/services.js';
import { limits } from '../support/limits.js';

/*
 * A new version is deployed while clients send requests, and no request fails. Requests that cannot finish in time are
 * cut and logged.
 */

const API_KEY = 'bootstrap-key-of-the-fault-tests';

let server: PostgresqlServer;
let client: pg.Client;
let services: Services;

beforeAll(async () => {
  server = await startPostgresqlServer();
  services = new Services(tmpdir(), {
    DATABASE_URL: await createOwnDatabase(server, 'petstore'),
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
  });
  client = new pg.Client({ connectionString: databaseUrl(server.url, 'petstore') });
  await client.connect();
}, 60_000);
afterEach(async () => {
  await services.kill();
});
afterAll(async () => {
  await client.end();
  await server.stop();
});

/** Every second request creates an animal; a proxy must not repeat these requests. */
function next(index: number): LoadRequest {
  return index % 2 === 0
    ? { method: 'GET', path: '/v1/pets' }
    : { method: 'POST', path: '/v1/pets', body: JSON.stringify({ name: `Rex ${index}`, categoryId: 7 }) };
}

async function countPets(): Promise<number> {
  const { rows } = await client.query<{ count: string }>('SELECT count(*) FROM pet');
  return Number(rows[0]?.count);
}

function created(outcomes: readonly Outcome[]): number {
  return outcomes.filter(({ status }) => status === 201).length;
}

test('SIGTERM under load: every accepted request is answered, on busy and on mostly idle connections', async () => {
  const rounds = 4;
  const figures = { requests: 0, refused: 0, reset: 0 };
  for (let round = 0; round < rounds; round++) {
    const service = services.start();
    const origin = await service.origin();
    const before = await countPets();
    // Clients without a pause are always busy. With the other pauses, some connections are idle at any moment, or about
    // to send.
    const loads = [0, 5, 30, 100].map((pauseMs) => new Load({ origin, apiKey: API_KEY, clients: 8, next, pauseMs }));
    await sleep(500);
    expect(await service.stop('SIGTERM')).toBe(0);
    const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
    const failed = outcomes.filter(({ failure }) => failure !== undefined);
    // Only new connections may fail: the port is closed, or the kernel held a connection that the service had not
    // accepted.
    expect(failed.filter(({ failure, reused }) => reused || !/^ECONN(REFUSED|RESET)$/.test(failure ?? ''))).toEqual([]);
    expect(tally(outcomes)).toEqual({
      200: expect.any(Number) as number,
      201: expect.any(Number) as number,
      ...tally(failed),
    });
    expect((await countPets()) - before).toBe(created(outcomes));
    figures.requests += outcomes.length - failed.length;
    figures.refused += tally(failed)['ECONNREFUSED'] ?? 0;
    figures.reset += tally(failed)['ECONNRESET'] ?? 0;
  }
  report('SIGTERM under load', { rounds, ...figures });
}, 120_000);

test('requests that do not finish within SHUTDOWN_TIMEOUT_MS are cut, and the log names them', async () => {
  const service = services.start({ SHUTDOWN_TIMEOUT_MS: '700', STATEMENT_TIMEOUT_MS: '60000' });
  const origin = await service.origin();
  await client.query(`UPDATE api_key SET scopes = scopes || '{metrics:read}'`);
  await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey: API_KEY });
  await client.query('BEGIN; LOCK TABLE pet IN EXCLUSIVE MODE');
  try {
    const stuck = [1, 3, 5].map((index) => send(next(index), { origin, apiKey: API_KEY }));
    // The scrape itself is one more request in flight.
    await until(async () => (await requestsInFlight(origin)) === stuck.length + 1);
    await untilBlocked();
    const exitCode = await service.stop('SIGTERM');
    expect((await Promise.all(stuck)).map(({ status }) => status)).toEqual([undefined, undefined, undefined]);
    expect(service.stdout).toContain('"Cutting 3 requests that did not finish within 700 ms: createPet (3)."');
    // The service waits some time for the statements, then exits.
    expect([exitCode, service.stderr]).toEqual([1, expect.stringMatching(/\npetstore: The database did not close /)]);
  } finally {
    await client.query('ROLLBACK');
  }
});

async function requestsInFlight(origin: string): Promise<number> {
  const { text } = await send({ method: 'GET', path: '/metrics' }, { origin, apiKey: API_KEY });
  return Number(/^petstore_http_requests_in_flight (\d+)$/m.exec(text)?.[1]);
}

/** Waits until a statement waits for the lock. */
async function untilBlocked(): Promise<void> {
  await until(async () => {
    const waiting = await rowsOf(server.url, `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);
    return waiting.length > 0;
  });
}

test('a silent connection does not delay the shutdown', async () => {
  const service = services.start({ SHUTDOWN_TIMEOUT_MS: '20000', ...limits({ shutdownLingerMs: 100 }) });
  const { port } = new URL(await service.origin());
  const socket = connect(Number(port), '127.0.0.1');
  await new Promise((done) => socket.once('connect', done));
  await sleep(100);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(service.stdout).not.toContain('Cutting');
  socket.destroy();
});

test.each(['1', '2'])(
  'a rolling restart of two instances behind haproxy fails no request, WEB_CONCURRENCY=%s',
  async (webConcurrency) => {
    const ports = [await freePort(), await freePort()];
    const startInstance = async (port: number): Promise<ServiceProcess> => {
      const service = services.start({
        PORT: String(port),
        WEB_CONCURRENCY: webConcurrency,
        SHUTDOWN_DELAY_MS: String(4 * CHECK_INTERVAL_MS),
      });
      await service.origin();
      return service;
    };
    const instances = await Promise.all(ports.map(startInstance));
    const proxy = await startProxy(ports);
    try {
      await untilItServes(proxy);
      const before = await countPets();
      const loads = [0, 20, 150].map(
        (pauseMs) => new Load({ origin: proxy.origin, apiKey: API_KEY, clients: 8, next, pauseMs }),
      );
      for (const [index, port] of ports.entries()) {
        await sleep(300);
        expect(await instances[index]?.stop('SIGTERM')).toBe(0);
        const replaced = await startInstance(port);
        // Continue only when the proxy sends requests to the new instance.
        await until(() => /"operation":"listPets"/.test(replaced.stdout));
      }
      const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
      const failed = outcomes.filter(({ status }) => status !== 200 && status !== 201);
      report('a rolling restart behind haproxy', {
        'processes of each': webConcurrency,
        restarts: ports.length,
        requests: outcomes.length,
        failed: failed.length,
        'slowest ms': Math.ceil(percentile(outcomes, 1)),
      });
      expect(tally(failed)).toEqual({});
      expect((await countPets()) - before).toBe(created(outcomes));
    } finally {
      await proxy.stop();
    }
  },
  180_000,
);

async function untilItServes({ origin }: Proxy): Promise<void> {
  await until(
    async () => (await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey: API_KEY })).status === 200,
  );
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !(await holds()); await sleep(20)) {
    if (Date.now() > deadline) throw new Error(`Not within 60 s: ${holds.toString()}`);
  }
}

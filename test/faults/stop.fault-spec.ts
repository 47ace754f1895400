import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, percentile, send, tally } from '../support/load.js';
import { petsOf, rowsOf, useOwnServer } from '../support/own-database.js';
import { Services } from '../operation/support/services.js';
import type { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';
import { balance, creation, NOTHING_WRONG } from '../support/witness.js';

/* Signals stop the service while clients call it. */

import.meta.jest.setTimeout(120_000);

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const PETS: LoadRequest = { method: 'GET', path: '/v1/pets' };

const own = useOwnServer();
const services = new Services(() => ({
  DATABASE_URL: own.url,
  DATABASE_POOL_SIZE: '4',
  BOOTSTRAP_API_KEY: API_KEY,
  RATE_LIMIT_PER_MINUTE: '0',
}));

async function start(settings: Record<string, string> = {}): Promise<{ service: ServiceProcess; origin: string }> {
  const service = services.start(settings);
  return { service, origin: await service.origin() };
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s drains the service: every accepted request gets a response',
  async (signal) => {
    const { service, origin } = await start();
    // Clients without a pause are always busy. With the other pauses, some connections are idle at any moment, or about to send.
    const loads = [0, 5, 30, 100].map((pauseMs) => {
      const next = (index: number): LoadRequest => (index % 2 === 0 ? PETS : creation(`${signal}-${pauseMs}-${index}`));
      return new Load({ origin, apiKey: API_KEY, clients: 8, next, pauseMs });
    });
    // A connection without a request does not delay the end.
    const silent = connect(Number(new URL(origin).port), '127.0.0.1').on('error', () => undefined);
    await sleep(500);
    // Twice, as under npm on a terminal.
    process.kill(service.pid, signal);
    expect(await service.stop(signal)).toBe(0);
    silent.destroy();
    const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
    const lost = outcomes.filter(({ status }) => status !== 200 && status !== 201);
    // Only new connections may fail: the port is closed, or the kernel held a connection that the process had not accepted.
    expect(lost.filter(({ failure, reused }) => reused || !/^ECONN(REFUSED|RESET)$/.test(failure ?? ''))).toEqual([]);
    const made = balance(outcomes, await petsOf(own.url, signal));
    expect(made).toMatchObject({ ...NOTHING_WRONG, unacknowledgedButThere: 0 });
    expect(made.acknowledged).toBeGreaterThan(0);
    expect(service.stderr).toMatch(/^The Pet Store Service [^\n]+\nTo make [^\n]+\nDocumentation: [^\n]+\n$/);
    expect(service.stdout).not.toContain('Cutting');
    report(`${signal} under load`, { ...tally(outcomes), 'slowest ms': Math.ceil(percentile(outcomes, 1)) });
  },
);

test('a statement that outlasts SHUTDOWN_TIMEOUT_MS is cut, and the exit code is 1', async () => {
  const { service, origin } = await start({ SHUTDOWN_TIMEOUT_MS: '700', STATEMENT_TIMEOUT_MS: '60000' });
  const client = new pg.Client({ connectionString: own.superUrl });
  await client.connect();
  try {
    await client.query('BEGIN; LOCK TABLE pet IN EXCLUSIVE MODE');
    const body = '{"name":"Rex","categoryId":1}';
    const stuck = send({ method: 'POST', path: '/v1/pets', body }, { origin, apiKey: API_KEY });
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
    while ((await rowsOf(own.superUrl, waiting)).length === 0) await sleep(20);
    expect(await service.stop('SIGTERM')).toBe(1);
    expect((await stuck).status).toBeUndefined();
    expect(service.stdout).toContain('"Cutting 1 requests that did not finish within 700 ms: createPet."');
    expect(service.stderr).toMatch(/\npetstore: The database did not close /);
  } finally {
    await client.end();
  }
});

test('a second signal, more than a second after the first, ends the service at once', async () => {
  const { service, origin } = await start({ SHUTDOWN_DELAY_MS: '600000' });
  process.kill(service.pid, 'SIGTERM');
  process.kill(service.pid, 'SIGINT');
  const readiness: LoadRequest = { method: 'GET', path: '/health/ready' };
  await until(async () => (await send(readiness, { origin, apiKey: API_KEY })).status === 503);
  await sleep(1_200);
  expect((await send(readiness, { origin, apiKey: API_KEY })).status).toBe(503);
  expect(await service.stop('SIGTERM')).toBe(1);
});

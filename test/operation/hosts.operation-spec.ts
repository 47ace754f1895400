import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { HOST_TIMEOUT_MS } from '../../src/platform/database/servers/server-hosts.js';
import { administer, databaseUrl } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, percentile, send, tally } from '../support/load.js';
import { createOwnDatabase, petsOf, rowsOf } from '../support/own-database.js';
import { freePort } from './support/proxies.js';
import { balance, creation, NOTHING_WRONG, untilItWorks } from '../support/witness.js';
import { Services } from './support/services.js';

/*
 * DATABASE_URL lists several hosts: a dead one, a primary, and its synchronous standby. The service finds the primary,
 * also after a failover.
 */

const API_KEY = 'bootstrap-key-of-the-tests';

/** In ms; far below HOST_TIMEOUT_MS, the second that each host has to answer. */
const AT_ONCE_MS = 400;

import.meta.jest.setTimeout(120_000);

let home: string;
let primary: PostgresqlServer;
let standby: PostgresqlServer;
let deadPort: number;
let primaryUrl: string;
let services: Services;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  services = new Services(home, { BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' });
  deadPort = await freePort();
  primary = await startPostgresqlServer({ synchronous_commit: 'on' });
  primaryUrl = await createOwnDatabase(primary, 'petstore');
  await primary.shutDown();
  standby = await startPostgresqlServer({ synchronous_commit: 'on' }, primary);
  await primary.start();
  await administer(primary.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
  await administer(primary.url, 'SELECT pg_reload_conf()');
});
afterEach(async () => {
  await services.kill();
});
afterAll(async () => {
  for (const server of [standby, primary]) {
    server.resume();
    await server.stop();
  }
  rmSync(home, { recursive: true, force: true });
});

/** The URI of the database with several ports of this machine. */
function urlOf(...ports: (string | number)[]): string {
  return primaryUrl.replace(/127\.0\.0\.1:\d+/, ports.map((port) => `127.0.0.1:${port}`).join(','));
}

const portOf = ({ url }: PostgresqlServer): string => new URL(url).port;

describe('a start without a primary is refused in one line', () => {
  test('with the state of each host, dead or a standby', async () => {
    expect(await services.refusal({ DATABASE_URL: urlOf(deadPort, portOf(standby)) })).toMatch(
      /^petstore: DATABASE_URL: No host of the database is the primary: 127\.0\.0\.1:\d+ connect ECONNREFUSED 127\.0\.0\.1:\d+; 127\.0\.0\.1:\d+ is a standby\. Start or promote one of them, or correct the hosts\.$/,
    );
  });

  test('for target_session_attrs=read-write and a standby as the only host', async () => {
    expect(
      await services.refusal({ DATABASE_URL: `${urlOf(portOf(standby))}?target_session_attrs=read-write` }),
    ).toMatch(/is a standby/);
  });

  test('for a standby without target_session_attrs when an API key must be stored', async () => {
    await sleep(200);
    const line = await services.refusal({ DATABASE_URL: urlOf(portOf(standby)) });
    expect(line).toMatch(
      /^petstore: PostgreSQL refuses: .*read-only transaction: .*Set DATABASE_URL to the primary\.$/,
    );
  });
});

test('the primary hangs and no standby is promoted: requests get 503 at once, and succeed when the primary resumes', async () => {
  const service = services.start({ DATABASE_URL: urlOf(deadPort, portOf(primary), portOf(standby)) });
  const target = { origin: await service.origin(), apiKey: API_KEY };
  expect((await send(creation('hang-1'), target)).status).toBe(201);
  primary.suspend();
  for (const deadline = performance.now() + 20_000; !service.stdout.includes('The database does not answer.');) {
    if (performance.now() > deadline) throw new Error(`No silence:\n${service.stdout}`);
    await sleep(50);
  }
  // Long enough for several attempts to find a primary.
  await sleep(2_000);
  const next = (index: number): LoadRequest => creation(`hang-${index + 2}`);
  const load = new Load({ ...target, clients: 4, next, pauseMs: 20 });
  await sleep(3_000);
  const outcomes = await load.stop();
  primary.resume();
  await untilItWorks(creation('hang-again-1'), target);
  const [median, p95] = [0.5, 0.95].map((share) => Math.round(percentile(outcomes, share))) as [number, number];
  report('several hosts, the primary hangs', { ...tally(outcomes), 'median in ms': median, 'p95 in ms': p95 });
  expect(Object.keys(tally(outcomes))).toEqual(['503']);
  expect(median).toBeLessThan(AT_ONCE_MS);
  // A request that waits for the hanging host takes at least this long.
  expect(p95).toBeLessThan(HOST_TIMEOUT_MS);
});

test('the primary hangs and the standby is promoted: the service follows, and no acknowledged animal is lost or doubled', async () => {
  // A host that hangs must not delay a connection to the others.
  const service = services.start({ DATABASE_URL: urlOf(deadPort, portOf(primary), portOf(standby)) });
  const origin = await service.origin();
  const prefix = 'failover';
  const load = new Load({
    origin,
    apiKey: API_KEY,
    clients: 8,
    next: (index) => (index % 3 === 0 ? { method: 'GET', path: '/v1/pets?limit=5' } : creation(`${prefix}-${index}`)),
    pauseMs: 5,
  });
  await sleep(1_000);
  const suspendedAt = performance.now();
  // A hanging machine sends nothing, so its connections do not break.
  primary.suspend();
  await sleep(500);
  await administer(standby.url, 'SELECT pg_promote()');
  await untilItWorks(creation('after-1'), { origin, apiKey: API_KEY });
  const recoveredMs = performance.now() - suspendedAt;
  await sleep(500);
  const outcomes = await load.stop();
  report('a failover with several hosts', { ...tally(outcomes), 'recovered after ms': Math.round(recoveredMs) });
  expect(Object.keys(tally(outcomes))).toEqual(['200', '201', '503']);
  expect(recoveredMs).toBeLessThan(10_000);
  const rows = await petsOf(databaseUrl(standby.url, 'petstore'), prefix);
  expect(balance(outcomes, rows)).toMatchObject(NOTHING_WRONG);

  // The old primary resumes and must not be used: the service looks for a host only when the current one fails.
  const created = await send(creation('after-2'), { origin, apiKey: API_KEY });
  expect(created.status).toBe(201);
  const found = await rowsOf(databaseUrl(standby.url, 'petstore'), `SELECT FROM pet WHERE name LIKE 'after-%'`);
  expect(found.length).toBeGreaterThanOrEqual(2);
});

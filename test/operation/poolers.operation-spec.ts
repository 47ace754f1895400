import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { administer } from '../support/postgresql-database.js';
import type { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, type Outcome, send, tally } from '../support/load.js';
import { petsOf, useOwnServer } from '../support/own-database.js';
import { type PgBouncer, startPgBouncer } from './support/pgbouncer.js';
import { balance, creation, NOTHING_WRONG } from '../support/witness.js';
import { Services } from './support/services.js';

/*
 * The service behind PgBouncer. The statement limits are in force in both modes, or the start is refused with one line. A
 * full pooler counts as overload, not as an unreachable database.
 */

const API_KEY = 'bootstrap-key-of-the-tests';
const CLI = join(import.meta.dirname, '../../dist/src/cli.js');

import.meta.jest.setTimeout(120_000);

/** The database without a pooler. */
const direct = useOwnServer();
const services = new Services(() => ({ BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' }));
const poolers: PgBouncer[] = [];
afterEach(async () => {
  for (const pooler of poolers.splice(0)) await pooler.stop();
});

async function pooler(settings: Record<string, string | number>): Promise<string> {
  const started = await startPgBouncer(direct.url, settings);
  poolers.push(started);
  return started.url;
}

const SHARED =
  /"level":40,[^\n]+ a pooler in transaction mode, which lets clients share sessions: set DATABASE_DIRECT_URL /;

const list = (origin: string): Promise<Outcome> =>
  send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey: API_KEY });

/** Log lines are written up to half a second late. */
async function untilLogged(service: ServiceProcess, line: RegExp): Promise<void> {
  for (let waited = 0; !line.test(service.stdout) && waited < 3_000; waited += 50) await sleep(50);
  expect(service.stdout).toMatch(line);
}

/** Expects that PostgreSQL itself cancels a statement that waits for a lock. */
async function expectLimits(origin: string, service: ServiceProcess): Promise<void> {
  const client = new pg.Client({ connectionString: direct.superUrl });
  await client.connect();
  try {
    await client.query('BEGIN; LOCK TABLE pet IN ACCESS EXCLUSIVE MODE');
    // Enough calls to use several sessions, each more than once.
    const calls = Array.from({ length: 8 }, () => list(origin));
    for (const { status, text } of await Promise.all(calls)) {
      expect([status, text]).toEqual([500, expect.stringContaining('took_too_long')]);
    }
    await untilLogged(service, /canceling statement due to statement timeout/);
    expect(service.stdout).not.toContain('Query read timeout');
  } finally {
    await client.end();
  }
}

function mixed(prefix: string): (index: number) => LoadRequest {
  return (index) =>
    index % 3 === 0 ? { method: 'GET', path: `/v1/pets?limit=${(index % 9) + 1}` } : creation(`${prefix}-${index}`);
}

async function expectBalance(outcomes: readonly Outcome[], prefix: string): Promise<void> {
  expect(balance(outcomes, await petsOf(direct.superUrl, prefix))).toMatchObject(NOTHING_WRONG);
}

async function keyIsRevokedWithin(origin: string): Promise<number> {
  const from = performance.now();
  await administer(direct.superUrl, 'UPDATE api_key SET revoked_at = now()');
  try {
    while ((await list(origin)).status !== 401) await sleep(10);
    return performance.now() - from;
  } finally {
    await administer(direct.superUrl, 'UPDATE api_key SET revoked_at = NULL');
  }
}

test('session mode, which refuses startup parameters: everything works, and the statement limits are in force', async () => {
  const url = await pooler({ pool_mode: 'session', default_pool_size: 10 });
  const service = services.start({ DATABASE_URL: url, DATABASE_POOL_SIZE: '5', STATEMENT_TIMEOUT_MS: '700' });
  const origin = await service.origin();
  const load = new Load({ origin, apiKey: API_KEY, clients: 10, next: mixed('session') });
  await sleep(1_500);
  const outcomes = await load.stop();
  expect(Object.keys(tally(outcomes))).toEqual(['200', '201']);
  await expectBalance(outcomes, 'session');
  await expectLimits(origin, service);
  expect(service.stdout).not.toMatch(SHARED);
  const command = services.start({ DATABASE_URL: url }, [CLI, 'keys', 'create', '--client', 'x', '--quiet']);
  expect([await command.ended, command.stdout, command.stderr]).toEqual([0, expect.stringMatching(/^pets_\w+\n$/), '']);
  // Not a log of the service: `kill` expects no key there.
  command.stdout = '';
});

test('transaction mode without prepared statements, with DATABASE_DIRECT_URL: everything works, and the statement limits are in force', async () => {
  // A pooler in transaction mode does not keep the limits that the service asks for: the role has them.
  await administer(direct.superUrl, `ALTER ROLE petstore_service SET statement_timeout = 700`);
  await administer(direct.superUrl, `ALTER ROLE petstore_service SET idle_in_transaction_session_timeout = 60000`);
  try {
    const url = await pooler({ pool_mode: 'transaction', default_pool_size: 3 });
    const settings = { DATABASE_URL: url, DATABASE_DIRECT_URL: direct.url, STATEMENT_TIMEOUT_MS: '700' };
    const [service, other] = [services.start(settings), services.start({ ...settings, MIGRATE_ON_START: 'true' })];
    const origins = [await service.origin(), await other.origin()];
    const next = mixed('transaction');
    const loads = origins.map(
      (origin, at) => new Load({ origin, apiKey: API_KEY, clients: 10, next: (index) => next(2 * index + at) }),
    );
    await sleep(2_000);
    const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
    report('PgBouncer in transaction mode', tally(outcomes));
    expect(Object.keys(tally(outcomes))).toEqual(['200', '201']);
    await expectBalance(outcomes, 'transaction');
    const creationWithKey = { ...creation('once-1'), headers: { 'idempotency-key': 'a-key' } };
    for (const origin of origins) {
      expect((await send(creationWithKey, { origin, apiKey: API_KEY })).status).toBe(201);
    }
    expect(await petsOf(direct.superUrl, 'once')).toHaveLength(1);
    await expectLimits(origins[0] as string, service);
    expect(service.stdout).not.toMatch(SHARED);
    expect(await keyIsRevokedWithin(origins[0] as string)).toBeLessThan(1_500);
    const { status, stdout } = spawnSync(process.execPath, [CLI, 'migrate'], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...settings },
      cwd: services.home,
    });
    expect([status, stdout]).toEqual([0, 'The schema is current.\n']);
  } finally {
    await administer(direct.superUrl, 'ALTER ROLE petstore_service RESET ALL');
  }
});

test('transaction mode and wrong settings: start and new connections are refused with the statement that mends them', async () => {
  const short = { server_lifetime: 1, client_idle_timeout: 1 };
  const url = await pooler({ pool_mode: 'transaction', default_pool_size: 3, ...short });
  const settings = { DATABASE_URL: url, DATABASE_DIRECT_URL: direct.url };
  const service = services.start(settings);
  const origin = await service.origin();
  expect((await list(origin)).status).toBe(200);
  // PgBouncer itself keeps DateStyle, but not this one.
  await administer(direct.superUrl, `ALTER DATABASE petstore SET array_nulls TO off`);
  try {
    // A new connection for each: meanwhile the pooler closes the idle one.
    const untilIs = async (status: number): Promise<Outcome> => {
      for (let waited = 0; ; waited += 2_500) {
        await sleep(2_500);
        const answer = await list(origin);
        if (answer.status === status || waited > 20_000) return answer;
      }
    };
    const answer = await untilIs(503);
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1']);
    await untilLogged(service, /"Returned 503: array_nulls is 'off'.+ALTER ROLE/);
    await administer(direct.superUrl, `ALTER ROLE petstore_service IN DATABASE petstore SET array_nulls TO 'on'`);
    expect((await untilIs(200)).status).toBe(200);
    await administer(direct.superUrl, `ALTER DATABASE petstore SET datestyle TO 'German'`);
    const another = await pooler({ pool_mode: 'transaction' });
    expect(await services.refusal({ ...settings, DATABASE_URL: another })).toBe(
      `petstore: DATABASE_URL: datestyle is 'German, DMY', and the sessions of a pooler cannot be set one by one. ` +
        `Set it by ALTER ROLE … IN DATABASE petstore SET datestyle TO 'ISO', and let the pooler reconnect.`,
    );
  } finally {
    await administer(direct.superUrl, 'ALTER DATABASE petstore RESET ALL');
    await administer(direct.superUrl, 'ALTER ROLE petstore_service IN DATABASE petstore RESET ALL');
  }
});

test('transaction mode without DATABASE_DIRECT_URL: the start warns once, and migrate advises that setting', async () => {
  const url = await pooler({ pool_mode: 'transaction' });
  const service = services.start({ DATABASE_URL: url, LOG_LEVEL: 'info' });
  const origin = await service.origin();
  for (const _ of 'abc') expect((await list(origin)).status).toBe(200);
  await untilLogged(service, SHARED);
  expect(service.stdout.split(SHARED)).toHaveLength(2);
  expect(await services.refusal({ DATABASE_URL: url }, [CLI, 'migrate'])).toContain('Set DATABASE_DIRECT_URL.');
});

test.each([
  // Requests wait for a session, or in the queue for those that wait, as long as they may; of the two causes the first one of a
  // second is logged.
  ['all its sessions are in use', { default_pool_size: 3 }, /no session of PostgreSQL within 5000 ms|timeout exceeded/],
  ['its clients reach query_wait_timeout', { default_pool_size: 2, query_wait_timeout: 1 }, /query_wait_timeout/],
  ['it accepts no more clients', { default_pool_size: 20, max_client_conn: 3 }, /no more connections allowed/],
])(
  'a full pooler is reported as overload, 503 with Retry-After, not as a silent database: %s',
  async (title, settings, line) => {
    const url = await pooler({ pool_mode: 'session', ...settings });
    const service = services.start({ DATABASE_URL: url, DATABASE_POOL_SIZE: '8' });
    const origin = await service.origin();
    const prefix = title.replaceAll(' ', '_');
    const load = new Load({ origin, apiKey: API_KEY, clients: 30, next: mixed(prefix), pauseMs: 5 });
    await sleep(12_000);
    const outcomes = await load.stop();
    const counts = tally(outcomes);
    report(`a pooler is full: ${title}`, counts);
    expect(Object.keys(counts)).toEqual(['200', '201', '503']);
    expect((counts['200'] ?? 0) + (counts['201'] ?? 0)).toBeGreaterThan(50);
    for (const { status, headers } of outcomes) {
      if (status === 503) expect([headers['retry-after'], headers['content-type']]).toEqual(['1', 'application/json']);
    }
    await untilLogged(service, line);
    expect(service.stdout).not.toContain('The database does not respond');
    expect(outcomes.some(({ text }) => text.includes('may have been made'))).toBe(false);
    await expectBalance(outcomes, prefix);
  },
);

import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { KEY_TIME_TO_LIVE_MS } from '../../src/platform/api-keys/api-key.verifier.js';
import { administer } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { DatabaseProxy } from './support/database-proxy.js';
import { report } from '../support/figures.js';
import { type Outcome, percentile, send, tally } from '../support/load.js';
import { createOwnDatabase, petsOf, rowsOf } from '../support/own-database.js';
import {
  balance,
  creation,
  NOT_DONE,
  NOTHING_WRONG,
  OUTCOME_UNKNOWN,
  residentMiB,
  Witness,
} from '../support/witness.js';
import { limits } from '../support/limits.js';
import { until } from '../support/until.js';

/*
 * The database fails in different ways while clients call the service, and returns. "Survives" in the titles means:
 * every answer is one that the contract promises and arrives in time, every acknowledged animal is stored once and as
 * it was sent, and the service works again at most 2 s after the database's return.
 */

const API_KEY = 'bootstrap-key-of-the-tests';
const ACQUIRE_TIMEOUT_MS = 1_000;
const STATEMENT_TIMEOUT_MS = 1_500;

/** Longest time in ms for an answer: its place in the queue, a connection, its statement, and 1 s of grace. */
const LONGEST_MS = 2 * ACQUIRE_TIMEOUT_MS + STATEMENT_TIMEOUT_MS + 1_000;
/** Time in ms that a busy machine may add. */
const NOISE_MS = 2_000;

/** After about 2 s without an answer the service tries to connect, for 1 s; a busy machine may take 0.25 s longer. */
const KNOWN_AFTER_MS = 3_000 + 250;
/** Length of a silence. The service knows of it for about half of this time. */
const SILENCE_MS = 6_500;
/** Longest time in ms of an answer that waits for nothing, on a busy machine. */
const AT_ONCE_MS = 1_000;

/** Longest time in ms from the database's return until everything works. */
const RECOVERY_MS = 2_000;

import.meta.jest.setTimeout(120_000);

let server: PostgresqlServer;
let standby: PostgresqlServer | undefined;
let proxy: DatabaseProxy;
let home: string;
/** The address of the database without the proxy. */
let databaseUrl: string;
let service: ServiceProcess;
let origin: string;
let knownId: number;
let tests = 0;
let prefix: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  server = await startPostgresqlServer({ max_connections: '40', synchronous_commit: 'on' });
  databaseUrl = await createOwnDatabase(server, 'petstore');
  proxy = await DatabaseProxy.start(databaseUrl);
  service = new ServiceProcess(
    {
      DATABASE_URL: proxy.url,
      BOOTSTRAP_API_KEY: API_KEY,
      ...limits({ acquireTimeoutMs: ACQUIRE_TIMEOUT_MS }),
      STATEMENT_TIMEOUT_MS: String(STATEMENT_TIMEOUT_MS),
      RATE_LIMIT_PER_MINUTE: '0',
      LOG_LEVEL: 'warn',
    },
    home,
  );
  origin = await service.origin();
  const { text } = await send(creation('known-1'), { origin, apiKey: API_KEY });
  knownId = (JSON.parse(text) as { id: number }).id;
});

afterAll(async () => {
  await service?.kill();
  await proxy?.stop();
  await standby?.stop();
  await server?.stop();
  rmSync(home, { recursive: true, force: true });
});

beforeEach(() => {
  prefix = `test${++tests}`;
});

function call(path: string): Promise<Outcome> {
  return send({ method: 'GET', path }, { origin, apiKey: API_KEY });
}

function messageOf({ text }: Outcome): string {
  return (JSON.parse(text) as { message: string }).message;
}

/**
 * Lets clients call during a fault and afterwards until everything works. Then compares all answers with what the
 * service promises, and with the stored animals.
 *
 * @param fault causes the fault and repairs it; it resolves when the database is back
 */
async function underLoad(
  name: string,
  fault: (witness: Witness) => Promise<void>,
  { clients = 8, pauseMs = 10 } = {},
): Promise<readonly Outcome[]> {
  const witness = new Witness({ service, origin, apiKey: API_KEY, prefix, clients, pauseMs, knownId });
  let recoveryMs: number;
  try {
    await sleep(200);
    await fault(witness);
    recoveryMs = await witness.recovery(performance.now());
  } finally {
    await witness.stop();
  }
  const { outcomes } = witness;
  witness.assertAnswers({ slowestMs: LONGEST_MS + NOISE_MS });
  const made = balance(outcomes, await petsOf(databaseUrl, prefix));
  const unknown = outcomes.filter(({ status, text }) => status === 503 && text.includes('may have been made'));
  report(name, {
    ...tally(outcomes),
    ...made,
    'unknown outcomes': unknown.length,
    'slowest answer in ms': Math.round(percentile(outcomes, 1)),
    'recovery in ms': Math.round(recoveryMs),
  });
  expect(made).toMatchObject(NOTHING_WRONG);
  expect(made.acknowledged).toBeGreaterThan(0);
  expect(recoveryMs).toBeLessThanOrEqual(RECOVERY_MS);
  return outcomes;
}

/** Waits until readiness reports the database so. */
const untilDatabaseIs = (state: 'reachable' | 'unreachable'): Promise<true> =>
  until(async () => (await call('/health/ready')).text.includes('unreachable') === (state === 'unreachable'));

const untilSome = (witness: Witness, condition: (outcome: Outcome) => boolean): Promise<true> =>
  until(() => witness.outcomes.some(condition));

const messages = (outcomes: readonly Outcome[]): Set<string> =>
  new Set(outcomes.filter(({ status }) => status === 503).map(messageOf));

test('the service survives a shutdown and a new start of the database server', async () => {
  const outcomes = await underLoad('shut down', async () => {
    await server.shutDown();
    await untilDatabaseIs('unreachable');
    await sleep(2_000);
    await server.start();
  });
  expect(messages(outcomes)).toContain('The database is not available. Try again.');
});

test('the service survives connections that are ended or reset during statements', async () => {
  const ours = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'petstore_service'`;
  await underLoad('connections ended or reset', async () => {
    for (let round = 0; round < 40; round++) {
      if (round % 2 === 0) await administer(server.url, ours);
      else proxy.reset();
      await sleep(50);
    }
  });
});

test('the service survives a killed backend of PostgreSQL, which makes PostgreSQL restart all backends', async () => {
  await underLoad('a backend killed', async () => {
    for (let round = 0; round < 5; round++) {
      process.kill(await someBackend(), 'SIGKILL');
      await sleep(100);
      await until(() => rowsOf(server.url, 'SELECT 1').catch(() => undefined));
    }
  });
});

/** The process id of a backend that serves the service. */
async function someBackend(): Promise<number> {
  const connections = `SELECT pid FROM pg_stat_activity WHERE usename = 'petstore_service' LIMIT 1`;
  const [pid] = await until(async () => (await rowsOf<[number]>(server.url, connections))[0]);
  return pid;
}

test('the server hangs: a flood is answered at once, with bounded memory, and changes of unknown outcome are reported as such', async () => {
  let during: readonly Outcome[] = [];
  let before = 0;
  let peak = 0;
  const outcomes = await underLoad(
    'hanging, with a flood',
    async (witness) => {
      // The load itself takes memory, mostly for its first requests.
      // A slow machine gets fewer.
      await until(() => witness.outcomes.length >= 5_000).catch(() => undefined);
      before = residentMiB(service.pid);
      server.suspend();
      try {
        await untilDatabaseIs('unreachable');
        for (let step = 0; step < 40; step++) {
          await sleep(250);
          peak = Math.max(peak, residentMiB(service.pid));
        }
        const silentFrom = performance.now() - 5_000;
        during = witness.outcomes.filter(({ startedAt }) => startedAt >= silentFrom);
      } finally {
        server.resume();
      }
    },
    { clients: 100, pauseMs: 0 },
  );
  expect(new Set(during.map(({ status }) => status))).toEqual(new Set([503]));
  // The service knows of the silence, so no request waits for a time-out. The flood waits only in its own queue.
  expect(percentile(during, 0.99)).toBeLessThan(ACQUIRE_TIMEOUT_MS);
  expect(percentile(during, 1)).toBeLessThan(ACQUIRE_TIMEOUT_MS + NOISE_MS);
  expect([...messages(outcomes)].some((message) => OUTCOME_UNKNOWN.test(message))).toBe(true);
  expect([...messages(outcomes)].some((message) => NOT_DONE.test(message))).toBe(true);
  report('hanging, with a flood: memory', {
    'before in MiB': Math.round(before),
    'peak in MiB': Math.round(peak),
    'answers during the silence': during.length,
    'the slowest in ms': Math.round(percentile(during, 1)),
  });
  expect(peak - before).toBeLessThan(50);
});

test('the service survives a network that drops everything and closes no connection', async () => {
  await underLoad('network dead', async () => {
    proxy.swallow();
    // Longer than any answer may take, so that every wait reaches its time-out.
    await sleep(LONGEST_MS + NOISE_MS + 1_500);
    proxy.deliver();
  });
});

test('a silence of the database that the service knows of delays no request, whenever it was sent', async () => {
  const outcomes: Promise<Outcome>[] = [];
  const ask = (index: number): Promise<Outcome> => {
    if (index % 3 === 0) return call(`/v1/pets?limit=${(index % 7) + 1}`);
    if (index % 3 === 1) return call(`/v1/pets/${knownId}`);
    const keyed = index % 2 === 0 ? { headers: { 'idempotency-key': `${prefix}-${index}` } } : {};
    return send({ ...creation(`${prefix}-${index}`), ...keyed }, { origin, apiKey: API_KEY });
  };
  // 100 requests a second from the beginning of the silence, without waiting for answers to earlier ones.
  expect((await call('/v1/pets')).status).toBe(200);
  proxy.swallow();
  const silentFrom = performance.now();
  for (let index = 0; performance.now() - silentFrom < SILENCE_MS; index++) {
    outcomes.push(ask(index));
    await sleep(Math.max(0, silentFrom + 10 * (index + 1) - performance.now()));
  }
  proxy.deliver();
  const all = await Promise.all(outcomes);
  await untilDatabaseIs('reachable');
  const during = all.filter(({ startedAt, durationMs }) => startedAt + durationMs - silentFrom < SILENCE_MS - 500);
  expect(tally(during)).toEqual({ 503: during.length });
  // Once the service knows of the silence, it answers all waiting requests.
  const waited = all.filter(({ startedAt }) => startedAt - silentFrom < KNOWN_AFTER_MS);
  const late = all.filter(({ startedAt }) => {
    const since = startedAt - silentFrom;
    return since >= KNOWN_AFTER_MS && since < SILENCE_MS - 500;
  });
  const answeredAt = Math.max(...waited.map(({ startedAt, durationMs }) => startedAt + durationMs - silentFrom));
  report('known silence', {
    'requests before the service knew': waited.length,
    'last answer to them after ms': Math.round(answeredAt),
    'requests after that': late.length,
    'slowest of them in ms': Math.round(percentile(late, 1)),
  });
  expect(late.length).toBeGreaterThan(100);
  expect(percentile(late, 1)).toBeLessThan(AT_ONCE_MS);
  expect(answeredAt).toBeLessThan(KNOWN_AFTER_MS + AT_ONCE_MS);
});

test('a table is locked: readiness stays 200, and no request waits longer than promised', async () => {
  const locker = new pg.Client({ connectionString: server.url.replace(/postgres$/, 'petstore') });
  await locker.connect();
  const outcomes = await underLoad('table locked', async (witness) => {
    await locker.query('BEGIN');
    await locker.query('LOCK TABLE pet IN ACCESS EXCLUSIVE MODE');
    await sleep(10_000);
    await locker.query('COMMIT');
    // The database itself is reachable.
    expect(tally(witness.readiness)).toEqual({ 200: witness.readiness.length });
  });
  await locker.end();
  // PostgreSQL has cancelled these statements, so it is certain that they changed nothing.
  expect([...messages(outcomes)].every((message) => NOT_DONE.test(message))).toBe(true);
  expect(messages(outcomes).size).toBeGreaterThan(0);
});

test('the service survives other clients that take every connection of the database', async () => {
  const others: pg.Client[] = [];
  const takeAll = async (): Promise<void> => {
    for (;;) {
      const client = new pg.Client({ connectionString: databaseUrl });
      client.on('error', () => undefined);
      try {
        await client.connect();
      } catch (error) {
        expect((error as { code?: string }).code).toBe('53300');
        return;
      }
      others.push(client);
    }
  };
  await underLoad('out of connections', async () => {
    // A suspended service cannot take the connections that become free.
    process.kill(service.pid, 'SIGSTOP');
    await takeAll();
    const ours = `SELECT pid FROM pg_stat_activity WHERE application_name = 'petstore'`;
    await rowsOf(server.url, `SELECT pg_terminate_backend(pid, 10000) FROM (${ours}) AS ours`);
    await takeAll();
    expect(await rowsOf(server.url, ours)).toEqual([]);
    process.kill(service.pid, 'SIGCONT');
    await untilDatabaseIs('unreachable');
    await sleep(3_000);
    await Promise.all(others.map((client) => client.end()));
  });
});

test('the database is read-only: reads are served, and changes are refused as certainly not made', async () => {
  const outcomes = await underLoad('read-only', async (witness) => {
    await administer(server.url, `ALTER SYSTEM SET default_transaction_read_only = on`);
    await administer(server.url, 'SELECT pg_reload_conf()');
    // The setting reaches every backend soon after the first refusal.
    await untilSome(witness, ({ request, status }) => request.method === 'POST' && status === 503);
    await sleep(500);
    const from = performance.now();
    await sleep(2_000);
    const during = witness.outcomes.filter(({ startedAt }) => startedAt >= from);
    expect(tally(during.filter(({ request }) => request.method === 'POST'))).toEqual({
      503: expect.any(Number) as number,
    });
    expect(tally(during.filter(({ request }) => request.method === 'GET'))).toEqual({
      200: expect.any(Number) as number,
    });
    expect((await call('/health/ready')).status).toBe(200);
    await administer(server.url, 'ALTER SYSTEM RESET default_transaction_read_only');
    await administer(server.url, 'SELECT pg_reload_conf()');
  });
  expect(messages(outcomes)).toEqual(new Set(['The database is not available. Try again.']));
});

test('the disk is full: reads are served, and changes are refused as certainly not made', async () => {
  const disk = await SmallDisk.under('pet');
  try {
    const outcomes = await underLoad('disk full', async (witness) => {
      await disk.fill();
      await untilSome(witness, ({ status }) => status === 503);
      const from = performance.now();
      await sleep(3_000);
      const reads = witness.outcomes.filter(({ request, startedAt }) => request.method === 'GET' && startedAt >= from);
      expect(tally(reads)).toEqual({ 200: reads.length });
      await disk.empty();
    });
    expect(messages(outcomes)).toEqual(new Set(['The database is not available. Try again.']));
  } finally {
    await disk.empty();
    await disk.remove();
  }
});

/**
 * A disk for one table that a test can fill: a separate file system, if this user may mount one. Otherwise a trigger
 * raises the error of a full disk, SQLSTATE 53100, which simulates less.
 */
class SmallDisk {
  private constructor(
    private readonly table: string,
    private readonly mountPoint: string | undefined,
  ) {}

  static async under(table: string): Promise<SmallDisk> {
    const mountPoint = mkdtempSync(join(tmpdir(), 'petstore-disk-'));
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=777', 'tmpfs', mountPoint]).status === 0;
    report('disk full: the disk', { is: mounted ? 'a file system of 64 MiB' : 'a trigger that raises 53100' });
    if (!mounted) {
      rmSync(mountPoint, { recursive: true });
      return new SmallDisk(table, undefined);
    }
    const disk = new SmallDisk(table, mountPoint);
    const space = join(mountPoint, 'space');
    mkdirSync(space, { mode: 0o700 });
    const { uid, gid } = statSync(server.data);
    chownSync(space, uid, gid);
    await administer(server.url, `CREATE TABLESPACE small LOCATION '${space}'`);
    await administer(superUrl(), `ALTER TABLE ${table} SET TABLESPACE small`);
    return disk;
  }

  async fill(): Promise<void> {
    if (this.mountPoint === undefined) {
      const raise = `RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'`;
      await administer(
        superUrl(),
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${raise}; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON ${this.table} EXECUTE FUNCTION refuse()`,
      );
      return;
    }
    spawnSync('dd', ['if=/dev/zero', `of=${join(this.mountPoint, 'filler')}`, 'bs=64k']);
  }

  async empty(): Promise<void> {
    if (this.mountPoint === undefined) {
      await administer(superUrl(), 'DROP FUNCTION IF EXISTS refuse() CASCADE');
      return;
    }
    rmSync(join(this.mountPoint, 'filler'), { force: true });
  }

  async remove(): Promise<void> {
    if (this.mountPoint === undefined) return;
    await administer(superUrl(), `ALTER TABLE ${this.table} SET TABLESPACE pg_default`);
    await administer(server.url, 'DROP TABLESPACE small');
    spawnSync('umount', [this.mountPoint]);
    rmSync(this.mountPoint, { recursive: true });
  }
}

/** The database, as superuser. */
function superUrl(): string {
  return server.url.replace(/postgres$/, 'petstore');
}

test('database unreachable: a cached key is valid until its time to live ends; then the answer is 503, never 401', async () => {
  const refused = { method: 'POST', path: '/v1/pets', body: '{}' } as const;
  const status = async (apiKey: string): Promise<number | undefined> =>
    (await send(refused, { origin, apiKey })).status;
  // 400 shows that authentication has succeeded. The refused body needs no database.
  await untilStatusIs(400, () => status(API_KEY));
  expect(await status('a-key-that-nobody-has-made')).toBe(401);
  await server.shutDown();
  expect(await status(API_KEY)).toBe(400);
  expect(await status('a-key-that-was-not-seen-before')).toBe(503);
  await sleep(KEY_TIME_TO_LIVE_MS);
  expect(await status(API_KEY)).toBe(503);
  expect(await status('a-key-that-nobody-has-made')).toBe(503);
  await server.start();
  await untilStatusIs(400, () => status(API_KEY));
  expect(await status('a-key-that-was-not-seen-before')).toBe(401);
});

async function untilStatusIs(wanted: number, status: () => Promise<number | undefined>): Promise<void> {
  await until(async () => {
    const found = await status();
    expect([503, wanted]).toContain(found);
    return found === wanted;
  });
}

test('after all these faults, notifications of changed keys arrive, and no connection is left over', async () => {
  const secret = 'a-key-that-is-made-with-sql';
  const status = async (): Promise<number | undefined> =>
    (await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey: secret })).status;
  const count = async (name: string): Promise<number> =>
    (await rowsOf(server.url, `SELECT FROM pg_stat_activity WHERE application_name = '${name}'`)).length;
  await until(async () => (await count('petstore key changes')) === 1);
  expect(await count('petstore')).toBeLessThanOrEqual(10);

  expect(await status()).toBe(401);
  await administer(
    superUrl(),
    `WITH client AS (INSERT INTO client (name) VALUES ('sql') RETURNING id)
      INSERT INTO api_key (client_id, prefix, hash, scopes)
      SELECT id, 'a-key-that', sha256('${secret}'), ARRAY['pets:read'] FROM client`,
  );
  // Without the notification, the service would remember the refusal for the whole time to live.
  const madeAt = performance.now();
  while ((await status()) !== 200 && performance.now() - madeAt < KEY_TIME_TO_LIVE_MS) await sleep(20);
  expect(performance.now() - madeAt).toBeLessThan(KEY_TIME_TO_LIVE_MS / 2);
});

test('after all these faults, key usage is still written', async () => {
  const calls = async (): Promise<number> =>
    Number((await rowsOf<[string]>(superUrl(), 'SELECT coalesce(sum(calls), 0)::text FROM key_usage'))[0]?.[0]);
  const before = await calls();
  for (let count = 0; count < 10; count++) expect((await call('/v1/pets')).status).toBe(200);
  await until(async () => (await calls()) >= before + 10);
});

test('a standby takes over: it serves reads until its promotion, and no acknowledged animal is lost', async () => {
  await server.shutDown();
  const successor = (standby = await startPostgresqlServer({ max_connections: '40' }, server));
  await server.start();
  await administer(server.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
  await administer(server.url, 'SELECT pg_reload_conf()');
  const replicas = `SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`;
  while ((await rowsOf(server.url, replicas)).length === 0) await sleep(50);

  const past = databaseUrl;
  databaseUrl = past.replace(/:\d+\//, `:${new URL(successor.url).port}/`);
  try {
    await underLoad('failed over', async (witness) => {
      // The primary's machine disappears without closing its connections.
      proxy.swallow();
      await sleep(5_000);
      server.suspend();
      proxy.switchTo(databaseUrl);
      proxy.deliver();
      // A successful list shows that the service uses the standby, which then refuses changes.
      const isOf = (method: string, status: number, since: number) => (outcome: Outcome) =>
        outcome.startedAt > since && outcome.request.method === method && outcome.status === status;
      await untilSome(witness, isOf('GET', 200, performance.now()));
      const usedFrom = performance.now();
      await untilSome(witness, (one) => isOf('POST', 503, usedFrom)(one) && NOT_DONE.test(messageOf(one)));
      await untilDatabaseIs('reachable');
      await administer(successor.url, 'SELECT pg_promote()');
    });
  } finally {
    server.resume();
  }
});

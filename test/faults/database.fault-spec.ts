import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { administer } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { DatabaseProxy } from './support/database-proxy.js';
import { report } from '../support/figures.js';
import { Load, type Outcome, percentile, send, tally } from '../support/load.js';
import { petsOf, rowsOf, useOwnServer } from '../support/own-database.js';
import {
  balance,
  creation,
  NOT_DONE,
  NOTHING_WRONG,
  OUTCOME_UNKNOWN,
  residentMiB,
  Witness,
} from '../support/witness.js';
import { until } from '../support/until.js';

/*
 * The database fails in different ways while clients call the service, and returns. "Survives" in the titles means:
 * every response is one that the contract promises and arrives in time, every acknowledged pet is stored once and as
 * it was sent, and the service works again at most 2 s after the database's return.
 */

const API_KEY = 'bootstrap-key-of-the-tests';
const ACQUIRE_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 1_500;

/** Longest time in ms for a response: its place in the queue, a connection, its statement, and 1 s of grace. */
const LONGEST_MS = 2 * ACQUIRE_TIMEOUT_MS + STATEMENT_TIMEOUT_MS + 1_000;
/** Time in ms that a busy machine may add. */
const NOISE_MS = 2_000;

/** Longest time in ms of a response that waits for nothing, on a busy machine. */
const AT_ONCE_MS = 1_000;

/** Longest time in ms from the database's return until everything works. */
const RECOVERY_MS = 2_000;

import.meta.jest.setTimeout(120_000);

const own = useOwnServer({ max_connections: '40', synchronous_commit: 'on' });
let server: PostgresqlServer;
let standby: PostgresqlServer | undefined;
let proxy: DatabaseProxy;
/** The address of the database without the proxy. */
let databaseUrl: string;
let service: ServiceProcess;
let origin: string;
let knownId: number;
let tests = 0;
let prefix: string;

beforeAll(async () => {
  ({ server, url: databaseUrl } = own);
  proxy = await DatabaseProxy.start(databaseUrl);
  service = new ServiceProcess(
    {
      DATABASE_URL: proxy.url,
      BOOTSTRAP_API_KEY: API_KEY,
      STATEMENT_TIMEOUT_MS: String(STATEMENT_TIMEOUT_MS),
      RATE_LIMIT_PER_MINUTE: '0',
      LOG_LEVEL: 'warn',
    },
    tmpdir(),
  );
  origin = await service.origin();
  const { text } = await send(creation('known-1'), { origin, apiKey: API_KEY });
  knownId = (JSON.parse(text) as { id: number }).id;
});

afterAll(async () => {
  await service?.kill();
  await proxy?.stop();
  await standby?.stop();
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
 * Lets clients call during a fault and afterwards until everything works. Then compares all responses with what the
 * service promises, and with the stored pets.
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
    'slowest response in ms': Math.round(percentile(outcomes, 1)),
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
  new Set(outcomes.filter(({ status }) => Number(status) >= 500).map(messageOf));

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

test('the server hangs: a flood gets responses at once, with bounded memory, and changes of unknown outcome are reported as such', async () => {
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
  expect(percentile(during, 0.99)).toBeLessThan(AT_ONCE_MS);
  expect(percentile(during, 1)).toBeLessThan(AT_ONCE_MS + NOISE_MS);
  // A request that waits for a connection when the service notices the silence may wait as long as without it.
  expect(percentile(outcomes, 1)).toBeLessThan(ACQUIRE_TIMEOUT_MS + AT_ONCE_MS);
  expect([...messages(outcomes)].some((message) => OUTCOME_UNKNOWN.test(message))).toBe(true);
  expect([...messages(outcomes)].some((message) => NOT_DONE.test(message))).toBe(true);
  report('hanging, with a flood: memory', {
    'before in MiB': Math.round(before),
    'peak in MiB': Math.round(peak),
    'responses during the silence': during.length,
    'the slowest in ms': Math.round(percentile(during, 1)),
  });
  expect(peak - before).toBeLessThan(50);
});

test('a table is locked: no request waits longer than promised', async () => {
  const locker = new pg.Client({ connectionString: own.superUrl });
  await locker.connect();
  const outcomes = await underLoad('table locked', async () => {
    await locker.query('BEGIN');
    await locker.query('LOCK TABLE pet IN ACCESS EXCLUSIVE MODE');
    await sleep(10_000);
    await locker.query('COMMIT');
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

const NO_SPACE = `RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'`;

test.each([
  [
    'the database is read-only',
    ['ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()'],
    ['ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()'],
  ],
  [
    'the disk is full',
    [
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${NO_SPACE}; END $$`,
      'CREATE TRIGGER refuse BEFORE INSERT ON pet EXECUTE FUNCTION refuse()',
    ],
    ['DROP FUNCTION refuse() CASCADE'],
  ],
])('%s: reads are served, and changes are refused as certainly not made', async (name, begin, end) => {
  const outcomes = await underLoad(name, async (witness) => {
    for (const statement of begin) await administer(own.superUrl, statement);
    // The setting reaches every backend soon after the first refusal.
    await untilSome(witness, ({ request, status }) => request.method === 'POST' && status === 503);
    await sleep(500);
    const from = performance.now();
    await sleep(2_000);
    const during = witness.outcomes.filter(({ startedAt }) => startedAt >= from);
    const ofMethod = (method: string): Record<string, number> =>
      tally(during.filter(({ request }) => request.method === method));
    expect([ofMethod('POST'), ofMethod('GET')]).toEqual([{ 503: expect.any(Number) }, { 200: expect.any(Number) }]);
    expect((await call('/health/ready')).status).toBe(200);
    for (const statement of end) await administer(own.superUrl, statement);
  });
  expect(messages(outcomes)).toEqual(new Set(['The database is not available. Try again.']));
});

test('after all these faults, changes of keys take effect, and no connection is left over', async () => {
  const secret = 'a-key-that-is-made-with-sql';
  const status = async (): Promise<number | undefined> =>
    (await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey: secret })).status;
  const connections = `SELECT FROM pg_stat_activity WHERE application_name = 'petstore'`;
  expect((await rowsOf(server.url, connections)).length).toBeLessThanOrEqual(10);

  expect(await status()).toBe(401);
  await administer(
    own.superUrl,
    `WITH client AS (INSERT INTO client (name) VALUES ('sql') RETURNING id)
      INSERT INTO api_key (client_id, prefix, hash, scopes)
      SELECT id, 'a-key-that', sha256('${secret}'), ARRAY['pets:read'] FROM client`,
  );
  expect(await status()).toBe(200);
  await administer(own.superUrl, `UPDATE api_key SET revoked_at = now() WHERE prefix = 'a-key-that'`);
  await until(async () => (await status()) === 401);
});

test('after all these faults, key usage is still written', async () => {
  const calls = async (): Promise<number> =>
    Number((await rowsOf<[string]>(own.superUrl, 'SELECT coalesce(sum(calls), 0)::text FROM key_usage'))[0]?.[0]);
  const before = await calls();
  for (let count = 0; count < 10; count++) expect((await call('/v1/pets')).status).toBe(200);
  await until(async () => (await calls()) >= before + 10);
});

test('the synchronous standby is unreachable: a bounded number of changes wait for it, and lists are served', async () => {
  const poolSize = 4;
  const settings = {
    DATABASE_URL: databaseUrl,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    DATABASE_POOL_SIZE: String(poolSize),
    STATEMENT_TIMEOUT_MS: '200',
  };
  const own = new ServiceProcess(settings, tmpdir());
  try {
    const target = { origin: await own.origin(), apiKey: API_KEY };
    const create = (name: string): Promise<Outcome> => send(creation(name), target);
    expect((await create('sync-1')).status).toBe(201);
    await administer(server.url, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
    await administer(server.url, 'SELECT pg_reload_conf()');
    const load = new Load({ ...target, clients: 2, next: (index) => creation(`sync-${index}`), pauseMs: 50 });
    await sleep(8_000);
    const list = (): Promise<Outcome> => send({ method: 'GET', path: '/v1/pets' }, target);
    const lists = await Promise.all(Array.from({ length: 10 }, list));
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()`;
    const backends = (await rowsOf(server.url, waiting)).length;
    await administer(server.url, 'ALTER SYSTEM RESET synchronous_standby_names');
    await administer(server.url, 'SELECT pg_reload_conf()');
    await until(async () => (await create('sync-2')).status === 201);
    const outcomes = await load.stop();
    report('synchronous standby away', { ...tally(outcomes), backends });
    expect(lists.map(({ status }) => status)).toEqual(lists.map(() => 200));
    expect(backends).toBeGreaterThan(0);
    // Those in flight when half of the pool's size is reached come on top.
    expect(backends).toBeLessThanOrEqual(1.5 * poolSize);
  } finally {
    await administer(server.url, 'ALTER SYSTEM RESET synchronous_standby_names');
    await administer(server.url, 'SELECT pg_reload_conf()');
    await own.kill();
  }
});

test('a standby takes over: it serves reads until its promotion, and no acknowledged pet is lost', async () => {
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

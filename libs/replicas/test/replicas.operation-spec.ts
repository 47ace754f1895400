import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Database, openDatabase } from '#postgres';
import type { LimitedWarnings } from '#runtime';
import { MIGRATIONS, readConfig } from '../../../test/support/config.js';
import { Replicas } from '../src/replicas.js';
import { administer, databaseUrl } from '../../../test/support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../../../test/support/postgresql-server.js';
import { ServiceProcess } from '../../../test/support/service-process.js';
import { report } from '../../../test/support/figures.js';
import { Load, type LoadRequest, type Outcome, percentile, send, tally } from '../../../test/support/load.js';
import { createOwnDatabase, rowsOf } from '../../../test/support/own-database.js';
import { creation } from '../../../test/support/witness.js';
import { until } from '../../../test/support/until.js';

/*
 * Two instances and two standbys, one of which replays each commit 10 ms late, the other 200 ms. Standbys lag, stop,
 * hang, are promoted and cancel statements. No client may notice.
 */

const API_KEY = 'bootstrap-key-of-the-tests';
/** A read waits for a replica with this delay, and never for the other one. */
const NEAR_DELAY_MS = 10;
const DELAY_MS = 200;

/** Longest time in ms of a list while a replica fails: 70 ms, and 2 s that a busy machine may add. */
const LIST_MS = 70 + 2_000;

import.meta.jest.setTimeout(120_000);

let home: string;
let primary: PostgresqlServer;
let near: PostgresqlServer;
let delayed: PostgresqlServer;
let follower: PostgresqlServer | undefined;
let settings: Record<string, string>;
const services: ServiceProcess[] = [];
let origins: string[];
const closers: (() => Promise<void>)[] = [];

/** The service's URI of the database on another server. */
const on = (server: PostgresqlServer): string =>
  (settings.DATABASE_URL as string).replace(/:\d+\//, `:${new URL(server.url).port}/`);

const superUrl = (): string => databaseUrl(primary.url, 'petstore');

async function startService(others: Record<string, string> = {}): Promise<string> {
  const service = new ServiceProcess({ ...settings, ...others }, home);
  services.push(service);
  return service.origin();
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  primary = await startPostgresqlServer({ max_connections: '60', synchronous_commit: 'on' });
  settings = {
    DATABASE_URL: await createOwnDatabase(primary, 'petstore'),
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'warn',
  };
  await primary.shutDown();
  // The replay cancels a conflicting statement at once.
  const standby = { max_connections: '60', synchronous_commit: 'on', max_standby_streaming_delay: '0' };
  near = await startPostgresqlServer({ ...standby, recovery_min_apply_delay: `${NEAR_DELAY_MS}ms` }, primary);
  delayed = await startPostgresqlServer({ ...standby, recovery_min_apply_delay: `${DELAY_MS}ms` }, primary);
  await primary.start();
  settings.DATABASE_REPLICA_URLS = `${on(near)},${on(delayed)}`;
  origins = [await startService(), await startService()];
  await administer(superUrl(), `UPDATE api_key SET scopes = scopes || '{metrics:read}'`);
  await untilReady(near);
});

afterAll(async () => {
  for (const close of closers) await close();
  for (const service of services) await service.kill();
  for (const server of [follower, near, delayed, primary]) {
    server?.resume();
    await server?.stop();
  }
  rmSync(home, { recursive: true, force: true });
});

const call = (path: string, origin = origins[0] as string): Promise<Outcome> =>
  send({ method: 'GET', path }, { origin, apiKey: API_KEY });

/** The value of a metric of an instance; 0 if the metric is missing. */
async function metric(name: string, origin?: string): Promise<number> {
  const { text } = await call('/metrics', origin);
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.split(' ')[1] ?? 0);
}

const nameOf = (server: PostgresqlServer): string => `127.0.0.1:${new URL(server.url).port}`;

const isReady = async (server: PostgresqlServer, origin?: string): Promise<boolean> =>
  (await metric(`petstore_replica_ready{replica="${nameOf(server)}"}`, origin)) === 1;

const untilNotUsed = (server: PostgresqlServer): Promise<true> => until(async () => !(await isReady(server)));

/** Lists pets on both instances, one of which may try a replica that it does not use. */
const listOnBoth = (): Promise<unknown> => Promise.all(origins.map((origin) => call('/v1/pets', origin)));

const untilReady = (server: PostgresqlServer): Promise<true> =>
  until(async () => {
    await listOnBoth();
    return (await Promise.all(origins.map((origin) => isReady(server, origin)))).every(Boolean);
  });

/** Number of statements that replicas answered, and of those that fell back to the primary, on both instances. */
async function counted(): Promise<{ reads: number; fallbacks: number }> {
  const sums = { reads: 0, fallbacks: 0 };
  for (const origin of origins) {
    for (const line of (await call('/metrics', origin)).text.split('\n')) {
      const value = Number(line.split(' ')[1]);
      if (line.startsWith('petstore_replica_reads_total{')) sums.reads += value;
      if (line.startsWith('petstore_replica_fallbacks_total ')) sums.fallbacks += value;
    }
  }
  return sums;
}

/** The start of the page on which new pets appear. */
interface Start {
  readonly path: string;
  readonly after: number;
}

/** Clients that create pets and list them on both instances, and share what any of them has seen. */
class Catalogue {
  readonly known = new Set<number>();
  created = 0;
  lists = 0;
  missed = 0;
  stepsBack = 0;
  start: Start = { path: '/v1/pets?limit=100', after: 0 };

  /** Reads all pages from the start, and counts it if a pet is missing that was known before. */
  async list(origin: string, own: number | undefined): Promise<void> {
    const { start } = this;
    const before = [...this.known].filter((id) => id > start.after);
    const found = new Set<number>();
    for (let path: string | undefined = start.path; path !== undefined;) {
      const page = await call(path, origin);
      expect(page.status).toBe(200);
      const ids = (JSON.parse(page.text) as { id: number }[]).map(({ id }) => id);
      ids.forEach((id) => found.add(id));
      path = /<http:\/\/[^/]+([^>]+)>; rel="next"/.exec(String(page.headers.link))?.[1];
      const last = ids.at(-1) ?? 0;
      if (path !== undefined && last > this.start.after) this.start = { path, after: last };
    }
    this.lists++;
    if (own !== undefined && own > start.after && !found.has(own)) this.missed++;
    if (before.some((id) => id !== own && !found.has(id))) this.stepsBack++;
    found.forEach((id) => this.known.add(id));
  }

  async client(index: number, goesOn: () => boolean): Promise<void> {
    for (let round = index; goesOn(); round++) {
      const origin = origins[round % 2] as string;
      const { start } = this;
      const { status, text } = await send(creation(`pet-${round}`), { origin, apiKey: API_KEY });
      expect(status).toBe(201);
      const { id } = JSON.parse(text) as { id: number };
      if (id > start.after) this.known.add(id);
      this.created++;
      await this.list(origins[(round + 1) % 2] as string, id);
      await this.list(origin, id);
    }
  }
}

test('no list misses a change that was acknowledged or seen before the list was sent', async () => {
  const before = await counted();
  const catalogue = new Catalogue();
  // On a slow machine replicas lag more often, so it takes longer until they have served 200 lists.
  const [end, latest] = [performance.now() + 5_000, performance.now() + 60_000];
  let isEnough = false;
  const clients = Array.from({ length: 8 }, (_, index) => catalogue.client(index, () => !isEnough));
  const ended = Promise.all(clients).finally(() => (isEnough = true));
  while (!isEnough) {
    await Promise.race([ended, sleep(200)]);
    const reads = (await counted()).reads - before.reads;
    if ((performance.now() > end && reads > 200) || performance.now() > latest) isEnough = true;
  }
  await ended;
  const after = await counted();
  const reads = after.reads - before.reads;
  const fallbacks = after.fallbacks - before.fallbacks;
  const { created, lists, missed, stepsBack } = catalogue;
  report('two replicas, one of them late', { created, lists, missed, stepsBack, reads, fallbacks });
  expect({ missed, stepsBack }).toEqual({ missed: 0, stepsBack: 0 });
  expect(created).toBeGreaterThan(50);
  expect(reads).toBeGreaterThan(200);
});

/** Opens the database in this process, with the settings of the service. */
async function openReplicas(
  others: Record<string, string>,
): Promise<{ database: Database; close: () => Promise<void> }> {
  const config = readConfig({ ...settings, ...others });
  const dataSource = await openDatabase(config, MIGRATIONS);
  const replicas = new Replicas(config);
  const database = new Database(dataSource, config, replicas);
  database.onModuleInit();
  const close = async (): Promise<void> => {
    await replicas.onApplicationShutdown();
    await dataSource.destroy();
  };
  return { database, close };
}

const replicasOf = (database: Database): Replicas => database.replicas as Replicas;

const readyOf = (database: Database): boolean[] => replicasOf(database).all.map((replica) => replica.isReady);

describe('a statement on a replica', () => {
  let database: Database;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ database, close } = await openReplicas({ DATABASE_REPLICA_URLS: on(near) }));
  });
  afterAll(() => close());

  /** Whether exactly one read fell back since `before`, and the replica is still used. */
  const onlyRefused = (before: number): boolean => fallbacks() === before + 1 && readyOf(database)[0] === true;
  const fallbacks = (): number => replicasOf(database).fallbacks;
  const SLOW = `SELECT (SELECT count(*) FROM pet) >= 0, pg_sleep(0.4)::text, pg_is_in_recovery()`;

  test.each<[how: string, read: () => Promise<unknown[][]>]>([
    ['SQL', () => database.read({ name: '', text: SLOW }, [])],
    [
      'TypeORM',
      async () => {
        const rows = await database.readReplica((manager) => manager.query<Record<string, unknown>[]>(SLOW));
        return rows.map((row) => Object.values(row));
      },
    ],
  ])('is served by the primary when the replay cancels it: %s', async (_, read) => {
    const runsOnReplica = async (): Promise<boolean> => (await read()).at(0)?.at(2) === true;
    // On a busy machine the replica may lag; then the primary serves, and the round proves nothing.
    await until(async () => {
      await until(runsOnReplica);
      const before = fallbacks();
      const cancelled = read();
      await sleep(200);
      // The replay conflicts with the statement and cancels it with 40001.
      await administer(superUrl(), 'BEGIN; LOCK TABLE pet IN ACCESS EXCLUSIVE MODE; SELECT txid_current(); COMMIT');
      expect(await cancelled).toEqual([[true, '', false]]);
      return onlyRefused(before);
    });
    await until(runsOnReplica);
  });

  // As one whose table the replica has not replayed yet. It keeps no other statement from the replica.
  test('that fails on the replica alone is served by the primary', async () => {
    await administer(
      superUrl(),
      `CREATE OR REPLACE FUNCTION fail_on_replica() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF pg_is_in_recovery() THEN RAISE EXCEPTION 'refused' USING ERRCODE = '42P01'; END IF;
        RETURN true;
      END $$`,
    );
    const statement = { name: '', text: 'SELECT fail_on_replica(), pg_is_in_recovery()' };
    await until(async () => {
      const before = fallbacks();
      expect(await database.read(statement, [])).toEqual([[true, false]]);
      return onlyRefused(before);
    });
  });

  test.each<[kind: string, run: (text: string) => Promise<unknown>]>([
    ['SQL', (text) => database.read({ name: '', text }, [])],
    ['TypeORM', (text) => database.readReplica((manager) => manager.query(text))],
  ])('that a standby refuses runs on the primary, is named in the log, and harms no other: %s', async (kind, run) => {
    const { warnings } = database.replicas as unknown as { warnings: LimitedWarnings };
    const logged: string[] = [];
    const warn = import.meta.jest.spyOn(warnings, 'warn').mockImplementation((line) => void logged.push(line));
    const text = `SELECT id FROM pet LIMIT 1 FOR UPDATE /* ${kind} */`;
    await until(async () => {
      const before = fallbacks();
      logged.length = 0;
      await run(text);
      return logged.length > 0 && onlyRefused(before);
    });
    warn.mockRestore();
    expect(logged.at(-1)).toBe(
      `A statement for replicas runs on the primary, because cannot execute SELECT FOR UPDATE in a read-only transaction: ${text}`,
    );
  });

  test('finds a connection after much work that sent nothing', async () => {
    const statement = { name: '', text: 'SELECT pg_is_in_recovery()' };
    const untilOnReplica = (): Promise<unknown> => until(async () => (await database.read(statement, []))[0]?.[0]);
    await untilOnReplica();
    for (let count = 0; count < 30; count++) await database.readReplica(() => Promise.resolve());
    await untilOnReplica();
  });

  test('that is wrong on every server fails with the error of the primary', async () => {
    await expect(database.read({ name: '', text: 'SELECT * FROM no_such_table' }, [])).rejects.toMatchObject({
      code: '42P01',
    });
  });
});

test('replicas are not used when the primary acknowledges commits before they are in its log', async () => {
  const url = `${settings.DATABASE_URL}?options=${encodeURIComponent('-c synchronous_commit=off')}`;
  const { database, close } = await openReplicas({ DATABASE_URL: url, DATABASE_REPLICA_URLS: on(near) });
  closers.push(close);
  expect(await database.read({ name: '', text: 'SELECT pg_is_in_recovery()' }, [])).toEqual([[false]]);
  expect(replicasOf(database).fallbacks).toBe(1);
});

test('a replica that is away is tried again, with pauses', async () => {
  let trials = 0;
  const away = createServer((socket) => {
    trials++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(away, 'listening');
  const url = on(near).replace(/:\d+\//, `:${(away.address() as AddressInfo).port}/`);
  const { database, close } = await openReplicas({ DATABASE_REPLICA_URLS: url });
  const read = async (): Promise<void> =>
    expect(await database.read({ name: '', text: 'SELECT pg_is_in_recovery()' }, [])).toEqual([[false]]);
  await until(async () => read().then(() => trials >= 3));
  const before = trials;
  for (const end = performance.now() + 2_000; performance.now() < end; await sleep(5)) await read();
  expect(trials - before).toBeLessThan(10);
  await close();
  away.close();
});

/** Lists pets, and sometimes creates one, on both instances during a fault of a replica. */
async function underLoad(name: string, fault: () => Promise<unknown>): Promise<void> {
  const next = (index: number): LoadRequest =>
    index % 5 === 0
      ? creation(`load-${index}`)
      : { method: 'GET', path: `/v1/pets?limit=${(index % 50) + 1}&status=sold` };
  const before = await counted();
  const loads = origins.map((origin) => new Load({ origin, apiKey: API_KEY, clients: 4, next, pauseMs: 10 }));
  await sleep(300);
  await fault();
  await sleep(300);
  const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
  const after = await counted();
  const lists = outcomes.filter(({ request }) => request.method === 'GET');
  report(name, {
    ...tally(outcomes),
    'p50 of lists in ms': Math.round(percentile(lists, 0.5)),
    'p99 of lists in ms': Math.round(percentile(lists, 0.99)),
    'slowest list in ms': Math.round(percentile(lists, 1)),
    reads: after.reads - before.reads,
    fallbacks: after.fallbacks - before.fallbacks,
  });
  const wrong = outcomes.filter(({ status, request }) => status !== (request.method === 'POST' ? 201 : 200));
  expect(wrong.map(({ status, failure, text }) => `${status} ${failure} ${text}`)).toEqual([]);
  expect(percentile(lists, 1)).toBeLessThan(LIST_MS);
}

describe('no request fails and no list is late', () => {
  test('while a replica stops and returns', async () => {
    await underLoad('stopped', async () => {
      await near.shutDown();
      await untilNotUsed(near);
      await near.start();
      await untilReady(near);
    });
  });

  test('while all replicas hang and resume', async () => {
    await underLoad('hanging', async () => {
      near.suspend();
      delayed.suspend();
      await untilNotUsed(near);
      await sleep(3_000);
      near.resume();
      delayed.resume();
      await untilReady(near);
    });
  });
});

test('while one of two replicas hangs, the other one serves the lists, but for the trials of the first', async () => {
  delayed.suspend();
  try {
    await until(async () => {
      await listOnBoth();
      return !(await Promise.all(origins.map((origin) => isReady(delayed, origin)))).some(Boolean);
    });
    const before = await counted();
    for (let list = 0; list < 200; list++) await listOnBoth();
    const after = await counted();
    const [reads, fallbacks] = [after.reads - before.reads, after.fallbacks - before.fallbacks];
    report('one of two replicas hangs', { reads, fallbacks });
    expect([reads + fallbacks, fallbacks < 40]).toEqual([400, true]);
  } finally {
    delayed.resume();
  }
});

test('a replica lags: a list has the newest pet, metrics show the fallbacks, and the log says that it is behind', async () => {
  const { fallbacks } = await counted();
  await administer(near.url, 'SELECT pg_wal_replay_pause()');
  try {
    await until(async () => {
      const origin = origins[0] as string;
      const { text } = await send(creation('lagging'), { origin, apiKey: API_KEY });
      const catalogue = new Catalogue();
      await catalogue.list(origin, (JSON.parse(text) as { id: number }).id);
      expect(catalogue.missed).toBe(0);
      return !(await isReady(near));
    });
    expect((await counted()).fallbacks).toBeGreaterThan(fallbacks);
    await until(async () => {
      await listOnBoth();
      return services[0]?.stdout.includes(`${nameOf(near)} is not used: it is behind`);
    });
  } finally {
    await administer(near.url, 'SELECT pg_wal_replay_resume()');
  }
  await untilReady(near);
});

test('no request fails and no list is late while a replica is promoted, which is then not used, and the log says so', async () => {
  await underLoad('promoted', async () => {
    await administer(near.url, 'SELECT pg_promote()');
    // No client may see a change that was made on the promoted server alone.
    await administer(databaseUrl(near.url, 'petstore'), `DELETE FROM pet`);
    await untilNotUsed(near);
  });
  const { text } = await call('/v1/pets');
  expect(JSON.parse(text)).not.toEqual([]);
  await until(async () => {
    await listOnBoth();
    return services.every(({ stdout }) => stdout.includes(`${nameOf(near)} is not used: it is no standby`));
  });
});

test('after a failover a replica on the new timeline is used, one on the old timeline is not, and a start needs neither', async () => {
  // The test above has promoted it.
  await near.shutDown();
  delayed.suspend();
  follower = await startPostgresqlServer({ max_connections: '60' }, near);
  const all = { DATABASE_URL: on(near), DATABASE_REPLICA_URLS: `${on(delayed)},${on(follower)}` };
  await near.start();
  // One replica hangs and the other one is stopped. Neither prevents the start.
  await follower.shutDown();
  const { database, close } = await openReplicas(all);
  closers.push(close);
  const readsOnStandby = async (): Promise<unknown> =>
    (await database.read({ name: '', text: 'SELECT pg_is_in_recovery()' }, []))[0]?.[0];
  expect(await readsOnStandby()).toBe(false);
  await follower.start();
  delayed.resume();
  await until(async () => (await readsOnStandby()) && readyOf(database).join() === 'false,true');
  // The trials of the one that is not used cost the other one no reads. A busy machine may cost it a few.
  const before = replicasOf(database).fallbacks;
  const reads = 400;
  for (let read = 0; read < reads; read++, await sleep(5)) await readsOnStandby();
  expect(replicasOf(database).fallbacks - before).toBeLessThan(reads / 10);
});

test('the synchronous standby is unreachable: a bounded number of changes wait for it, and lists are served', async () => {
  for (const service of services.splice(0)) await service.kill();
  const poolSize = 4;
  const origin = await startService({
    DATABASE_REPLICA_URLS: '',
    DATABASE_POOL_SIZE: String(poolSize),
    STATEMENT_TIMEOUT_MS: '200',
  });
  const create = (name: string): Promise<Outcome> => send(creation(name), { origin, apiKey: API_KEY });
  expect((await create('sync-1')).status).toBe(201);
  await administer(superUrl(), `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
  await administer(superUrl(), 'SELECT pg_reload_conf()');
  const load = new Load({
    origin,
    apiKey: API_KEY,
    clients: 2,
    next: (index) => creation(`sync-${index}`),
    pauseMs: 50,
  });
  await sleep(8_000);
  const lists = await Promise.all(Array.from({ length: 10 }, () => call('/v1/pets', origin)));
  const [[backends]] = (await rowsOf(
    superUrl(),
    `SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'petstore' AND wait_event = 'SyncRep'`,
  )) as [[number]];
  await administer(superUrl(), 'ALTER SYSTEM RESET synchronous_standby_names');
  await administer(superUrl(), 'SELECT pg_reload_conf()');
  await until(async () => (await create('sync-2')).status === 201);
  const outcomes = await load.stop();
  report('synchronous standby away', { ...tally(outcomes), backends });
  expect(lists.map(({ status }) => status)).toEqual(lists.map(() => 200));
  expect(backends).toBeGreaterThan(0);
  // Those in flight when half of the pool's size is reached come on top.
  expect(backends).toBeLessThanOrEqual(1.5 * poolSize);
});

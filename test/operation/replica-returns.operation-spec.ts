import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Outcome, send } from '../support/load.js';
import { createOwnDatabase } from '../support/own-database.js';
import { administer, databaseUrl } from '../support/postgresql-database.js';
import { childrenOf, type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import type { ServiceProcess } from '../support/service-process.js';
import { creation } from '../support/witness.js';
import { Services } from './support/services.js';

/*
 * A standby that lags, one that was promoted and is rebuilt at the same address, and processes that are replaced while a
 * standby is unreachable. operation/replicas tests what clients see during faults of standbys.
 */

const API_KEY = 'bootstrap-key-of-the-tests';

import.meta.jest.setTimeout(120_000);

let home: string;
let primary: PostgresqlServer;
let standby: PostgresqlServer;
let services: Services;
let service: ServiceProcess;
let origin: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-replica-'));
  const settings = { max_connections: '60', synchronous_commit: 'on' };
  primary = await startPostgresqlServer(settings);
  const url = await createOwnDatabase(primary, 'petstore');
  await primary.shutDown();
  standby = await startPostgresqlServer(settings, primary);
  await primary.start();
  services = new Services(home, {
    DATABASE_URL: url,
    DATABASE_REPLICA_URLS: url.replace(/:\d+\//, `:${new URL(standby.url).port}/`),
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'warn',
  });
});
beforeEach(async () => {
  service = services.start();
  origin = await service.origin();
  await administer(databaseUrl(primary.url, 'petstore'), `UPDATE api_key SET scopes = scopes || '{metrics:read}'`);
  await untilStateIs('ready');
});
afterEach(() => services.kill());
afterAll(async () => {
  standby.resume();
  await standby.stop();
  await primary.stop();
  rmSync(home, { recursive: true, force: true });
});

const call = (path: string): Promise<Outcome> => send({ method: 'GET', path }, { origin, apiKey: API_KEY });

/** The sum of the samples whose name and labels match. */
async function metric(name: RegExp): Promise<number> {
  const { text } = await call('/metrics');
  const samples = text.split('\n').filter((line) => !line.startsWith('#') && name.test(line));
  return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 30_000; !(await holds()); await sleep(50)) {
    if (performance.now() > deadline) throw new Error(`Not within 30 s: ${holds.toString()}\n${service.stdout}`);
  }
}

/** Lists animals until a list has found the standby in this state. */
const untilStateIs = (state: string): Promise<void> =>
  until(async () => {
    await call('/v1/pets');
    return (await metric(new RegExp(`^petstore_replica_state\\{.*state="${state}"`))) === 1;
  });

/** Adds an animal, and expects it in the next list, whichever server answers that. */
async function addAndFind(name: string): Promise<void> {
  expect((await send(creation(name), { origin, apiKey: API_KEY })).status).toBe(201);
  expect((await call('/v1/pets?limit=100')).text).toContain(`"${name}"`);
}

const readsOfReplica = (): Promise<number> => metric(/^petstore_replica_reads_total/);

async function untilReplicaReads(): Promise<void> {
  const before = await readsOfReplica();
  await until(async () => (await call('/v1/pets')).status === 200 && (await readsOfReplica()) > before);
}

test('a standby lags: a list has the newest animal, and metrics and log show the lag and the fallbacks', async () => {
  await untilReplicaReads();
  const fallbacks = (): Promise<number> => metric(/^petstore_replica_fallbacks_total/);
  const before = await fallbacks();
  await administer(standby.url, 'SELECT pg_wal_replay_pause()');
  try {
    await addAndFind('lagging-1');
    await untilStateIs('behind');
    await until(async () => (await metric(/^petstore_replica_behind_bytes/)) > 0);
    expect(await fallbacks()).toBeGreaterThan(before);
    // The service logs only a lag that lasts.
    await until(() => Promise.resolve(/Replica 127\.0\.0\.1:\d+ is not used: /.test(service.stdout)));
  } finally {
    await administer(standby.url, 'SELECT pg_wal_replay_resume()');
  }
  await untilStateIs('ready');
  await until(async () => (await metric(/^petstore_replica_behind_bytes/)) === 0);
  await untilReplicaReads();
});

/** Replaces the files of the standby by a base backup of the running primary. */
async function rebuild(): Promise<void> {
  await standby.shutDown();
  const settings = readFileSync(join(standby.data, 'postgresql.auto.conf'), 'utf8');
  const backup = new pg.Client({ connectionString: primary.url });
  await backup.connect();
  await backup.query(`SELECT pg_backup_start('rebuild', true)`);
  // Files may vanish during the copy (PostgreSQL, "Making a Base Backup Using the Low Level API").
  const copy = 'rm -r "$1" && { cp -a "$0" "$1" || true; } && rm -rf "$1"/pg_wal/* "$1"/postmaster.*';
  const { status, stderr } = spawnSync('/bin/sh', ['-c', copy, primary.data, standby.data], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  const { rows } = await backup.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
  await backup.end();
  writeFileSync(join(standby.data, 'backup_label'), rows[0]?.labelfile ?? '');
  writeFileSync(join(standby.data, 'standby.signal'), '');
  appendFileSync(join(standby.data, 'postgresql.auto.conf'), settings);
  // PostgreSQL renames the first and removes the second.
  spawnSync('chown', [
    `--reference=${standby.data}`,
    join(standby.data, 'backup_label'),
    join(standby.data, 'standby.signal'),
  ]);
  await standby.start();
}

test('a promoted standby that is rebuilt at the same address is used again without a restart of the service', async () => {
  await addAndFind('before-1');
  await administer(standby.url, 'SELECT pg_promote()');
  await untilStateIs('primary');
  await addAndFind('between-1');
  await rebuild();
  await untilStateIs('ready');
  await addAndFind('after-1');
  await untilReplicaReads();
});

test.each<[how: string, away: () => unknown, back: () => unknown]>([
  ['is stopped', () => standby.shutDown(), () => standby.start()],
  ['hangs', () => standby.suspend(), () => standby.resume()],
])('a standby %s: killed processes are replaced, and the new ones serve', async (_, away, back) => {
  await services.kill();
  await away();
  try {
    service = services.start({ WEB_CONCURRENCY: '2' });
    origin = await service.origin();
    await until(() => Promise.resolve(childrenOf(service.pid).length === 2));
    const first = childrenOf(service.pid);
    for (const pid of first) {
      process.kill(pid, 'SIGKILL');
      await until(() => {
        const now = childrenOf(service.pid);
        return Promise.resolve(now.length === 2 && !now.includes(pid));
      });
    }
    // All processes are new, so the answer comes from one that started without the standby.
    await until(async () => (await call('/v1/pets')).status === 200);
    expect(childrenOf(service.pid).filter((pid) => first.includes(pid))).toEqual([]);
    expect(service.isRunning).toBe(true);
  } finally {
    await back();
  }
});

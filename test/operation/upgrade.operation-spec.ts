import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { roleUrls } from '../support/postgresql-roles.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, percentile, send } from '../support/load.js';
import { petsOf, rowsOf, useOwnServer } from '../support/own-database.js';
import { freePort } from '../support/programs.js';
import { CHECK_INTERVAL_MS, startProxy } from './support/haproxy.js';
import { until } from '../support/until.js';
import { balance, creation, NOTHING_WRONG } from '../support/witness.js';

/*
 * A version with a new column replaces the last release behind HAProxy and is rolled back, as docs/operating.md says. No
 * request fails. The newer version is this build with two more migrations.
 */

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const ROOT = join(import.meta.dirname, '../../');

const MIGRATIONS = {
  '4102444800000-add-note.js': `
    export class AddNote4102444800000 {
      backwardCompatible = true;
      async up(queryRunner) {
        await queryRunner.query("ALTER TABLE pet ADD note text NOT NULL DEFAULT 'none'");
      }
      async down(queryRunner) {
        await queryRunner.query('ALTER TABLE pet DROP note');
      }
    }`,
  '4102444800001-index-note.js': `
    export class IndexNote4102444800001 {
      backwardCompatible = true;
      transaction = false;
      async up(queryRunner) {
        await queryRunner.query('CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_pet_note ON pet (note, id)');
      }
      async down(queryRunner) {
        await queryRunner.query('DROP INDEX CONCURRENTLY ix_pet_note');
      }
    }`,
};

const own = useOwnServer();
let ownerUrl: string;
/** The installation of the newer version. */
let newer: string;
const running: ServiceProcess[] = [];

beforeAll(async () => {
  ({ ownerUrl } = roleUrls(own.server.url, 'petstore', 'petstore'));
  newer = await mkdtemp(join(tmpdir(), 'petstore-newer-'));
  for (const path of ['dist', 'package.json', 'scripts/check-system.cjs']) {
    await cp(join(ROOT, path), join(newer, path), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(newer, 'node_modules'));
  for (const [name, code] of Object.entries(MIGRATIONS)) await writeFile(join(newer, 'dist/migrations', name), code);
}, 60_000);
afterAll(async () => {
  for (const service of running) await service.kill();
  await rm(newer, { recursive: true, force: true });
});

/** Starts an instance of an installation, and waits until it listens. */
async function start(installation: string, port: number): Promise<ServiceProcess> {
  const settings = {
    DATABASE_URL: own.url,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    PORT: String(port),
    // A list waits in two queues, for half of this time in each. A migration may wait 2 s for its lock.
    SHUTDOWN_DELAY_MS: String(4 * CHECK_INTERVAL_MS),
  };
  const service = new ServiceProcess(settings, tmpdir(), { program: [join(installation, 'dist/src/main.js')] });
  running.push(service);
  await service.origin();
  return service;
}

/** Starts a command of an installation as the owner of the schema. */
function petstore(installation: string, command: string): ServiceProcess {
  const program = [join(installation, 'dist/src/cli.js'), command];
  const started = new ServiceProcess({ DATABASE_URL: ownerUrl }, tmpdir(), { program });
  running.push(started);
  return started;
}

/** Two of three requests are GETs. A POST has a key, so that the proxy may send it again when its instance has crashed. */
function next(index: number, client: number): LoadRequest {
  if (index % 3 !== 0) return { method: 'GET', path: `/v1/pets?limit=${1 + (index % 20)}` };
  return { ...creation(`upgrade-${client}-${index}`), headers: { 'idempotency-key': `upgrade-${client}-${index}` } };
}

test('migrate behind a backup, a crash, a rolling replacement and a rollback behind haproxy fail no request', async () => {
  const ports = [await freePort(), await freePort()] as const;
  const instances = await Promise.all(ports.map((port) => start(ROOT, port)));
  const proxy = await startProxy(ports);
  /** Waits until the proxy sends requests to an instance. */
  const untilServing = (service: ServiceProcess): Promise<true> =>
    until(() => service.stdout.includes('"operation":"listPets"'));
  const replaceAll = async (installation: string): Promise<void> => {
    for (const [index, port] of ports.entries()) {
      expect(await instances[index]?.stop('SIGTERM')).toBe(0);
      await untilServing((instances[index] = await start(installation, port)));
    }
  };
  const loads: Load[] = [];
  try {
    const probe = { origin: proxy.origin, apiKey: API_KEY };
    await until(async () => (await send({ method: 'GET', path: '/v1/pets' }, probe)).status === 200);
    const begunAt = performance.now();
    for (const pauseMs of [0, 20, 150])
      loads.push(new Load({ ...probe, clients: 6, next: (index) => next(index, pauseMs), pauseMs }));
    await Promise.all(instances.map(untilServing));

    const backup = new pg.Client({ connectionString: ownerUrl });
    await backup.connect();
    await backup.query('BEGIN');
    await backup.query('SELECT count(*) FROM pet');
    const migration = petstore(newer, 'migrate');
    await until(() => migration.stderr.includes('AddNote4102444800000 got no lock in time, attempt 1.'));
    await backup.query('COMMIT');
    await backup.end();
    expect([await migration.ended, migration.stdout]).toEqual([0, 'Applied migrations: 2.\n']);
    // Readiness is cached for 1 s; then the proxy needs several checks.
    await sleep(1_000 + 4 * CHECK_INTERVAL_MS);
    const status = petstore(ROOT, 'migrate:status');
    expect(await status.ended).toBe(0);
    expect(status.stdout.match(/^newer, compatible .+$/gm)).toHaveLength(2);

    await instances[0]?.kill();
    await sleep(500);
    await untilServing((instances[0] = await start(ROOT, ports[0])));
    await replaceAll(newer);
    await replaceAll(ROOT);

    const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
    const failed = outcomes.filter(({ status: code }) => code !== 200 && code !== 201);
    report('an upgrade behind haproxy', {
      requests: outcomes.length,
      failed: failed.length,
      'slowest ms': Math.ceil(percentile(outcomes, 1)),
    });
    // The body shows who answered: the service, or the proxy because no instance was available.
    const answers = failed.map(({ failure, text, startedAt }) => [Math.round(startedAt - begunAt), failure ?? text]);
    expect(answers).toEqual([]);
    const made = balance(outcomes, await petsOf(own.url, 'upgrade'));
    expect(made).toMatchObject({ ...NOTHING_WRONG, unacknowledgedButThere: 0 });
    expect(await rowsOf(own.url, `SELECT count(*) > 0 FROM pet WHERE note = 'none'`)).toEqual([[true]]);
  } finally {
    await Promise.all(loads.map((load) => load.stop()));
    await proxy.stop();
  }
}, 240_000);

test.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
  'after %s of migrate its locks are free, and its changes undone',
  async (signal) => {
    const file = join(newer, 'dist/migrations/4102444800002-add-owner.js');
    await writeFile(
      file,
      `export class AddOwner4102444800002 {
        backwardCompatible = true;
        async up(queryRunner) {
          await queryRunner.query('ALTER TABLE pet ADD owner text');
          await queryRunner.query('SELECT pg_sleep(60)');
        }
        async down() {}
      }`,
    );
    const locks = async (): Promise<unknown[]> =>
      rowsOf(ownerUrl, `SELECT mode FROM pg_locks WHERE relation = 'pet'::regclass AND mode = 'AccessExclusiveLock'`);
    const migration = petstore(newer, 'migrate');
    try {
      await until(async () => (await locks()).length > 0);
      const code = await migration.stop(signal);
      if (signal === 'SIGKILL') await until(async () => (await locks()).length === 0);
      else expect([code, await locks()]).toEqual([1, []]);
      if (signal !== 'SIGKILL') expect(migration.stderr).toMatch(/AddOwner4102444800002 failed and was undone: /);
      await expect(rowsOf(ownerUrl, 'SELECT owner FROM pet')).rejects.toThrow('does not exist');
    } finally {
      await migration.kill();
      await rm(file);
    }
  },
  60_000,
);

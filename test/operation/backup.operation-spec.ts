import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpClient } from '../support/http-client.js';
import { administer, databaseUrl } from '../support/postgresql-database.js';
import { roleUrls } from '../support/postgresql-roles.js';
import { type PostgresqlServer, serverUser, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { createOwnDatabase, rowsOf } from '../support/own-database.js';
import { freePort } from '../support/programs.js';

/*
 * The commands of docs/backup.md, on PostgreSQL 15 with its own tools, while clients add pets, and on the embedded engine. The last test
 * recovers from an accidental DELETE.
 */

const CLI = join(import.meta.dirname, '../../dist/src/cli.js');
const PAGE = readFileSync(new URL('../../docs/backup.md', import.meta.url), 'utf8');
const API_KEY = 'bootstrap-key-of-the-fault-tests';
const DATABASE = 'petstore';

/** The directory of PostgreSQL's programs, as Debian 12 installs them. */
const installation = '/usr/lib/postgresql/15/bin';
let server: PostgresqlServer;
let serviceUrl: string;
let ownerUrl: string;
/** The directory of backups; its owner is the user of PostgreSQL. */
let backup: string;
let service: ServiceProcess;
let client: HttpClient;
/** The data directory of a server that was started by the commands. */
let restored: string | undefined;

beforeAll(async () => {
  if (!existsSync(join(installation, 'pg_basebackup')))
    throw new Error('PostgreSQL 15 is missing. Install it: apt-get install postgresql-15');
  backup = mkdtempSync(join(tmpdir(), 'petstore-backup-'));
  mkdirSync(join(backup, 'wal'));
  const user = serverUser();
  if (user) for (const path of [backup, join(backup, 'wal')]) chownSync(path, user.uid, user.gid);
  const archiving = Object.fromEntries(
    block('ini', 'Point in time')
      .replaceAll('/mnt/backup', backup)
      .trim()
      .split('\n')
      .map((line) => /^(\w+) = '?(.+?)'?$/.exec(line)?.slice(1) as [string, string]),
  );
  // A restored server must allow as many connections as the primary, but its files do not contain this setting.
  server = await startPostgresqlServer({ ...archiving, max_connections: '100' }, undefined, installation);
  serviceUrl = await createOwnDatabase(server, DATABASE);
  ({ ownerUrl } = roleUrls(server.url, DATABASE, DATABASE));
  [service, client] = await start({ DATABASE_URL: serviceUrl });
}, 120_000);
afterAll(async () => {
  await service.kill();
  if (restored !== undefined) await run(`pg_ctl --pgdata "${restored}" --mode immediate stop`);
  await server.stop();
  await rm(backup, { recursive: true, force: true });
});

async function start(settings: Record<string, string>): Promise<[ServiceProcess, HttpClient]> {
  const started = new ServiceProcess({ ...settings, BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0' }, tmpdir());
  return [started, new HttpClient(await started.origin(), API_KEY)];
}

/** The code block of a section of docs/backup.md that contains these words. */
function block(language: string, section: string, words = ''): string {
  const text = PAGE.slice(PAGE.indexOf(`\n## ${section}\n`)).replace(/(?<=\n## [^]*)\n## [^]*/, '');
  const found = [...text.matchAll(/```(\w+)\n([^]*?)```/g)].find(
    ([, name, code = '']) => name === language && code.includes(words),
  );
  if (!found) throw new Error(`docs/backup.md has no ${language} block with '${words}' in '${section}'.`);
  return found[2] as string;
}

/** Runs commands of the page: those of PostgreSQL as its user, those of the service from the build. */
async function run(commands: string, variables: Record<string, string> = {}): Promise<void> {
  const petstore = `"${process.execPath}" "${CLI}"`;
  // PostgreSQL does not run as root; its user may not be able to read this checkout.
  const user = /npm run petstore|DATA_DIR/.test(commands) || commands.includes(CLI) ? undefined : serverUser();
  const child = spawn('/bin/bash', ['-euc', commands.replaceAll('npm run petstore --', petstore)], {
    ...user,
    cwd: backup,
    env: { PATH: `${installation}:${process.env.PATH}`, BACKUP: backup, ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  // Wait for `exit`, not `close`: a server that the commands start keeps the pipe open.
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`${commands} fails:\n${output}`);
}

/** Adds a pet, and returns its id when it is acknowledged. */
async function add(name: string): Promise<string> {
  const { status, headers } = await client.post('/v1/pets', { name, categoryId: 7 });
  if (status !== 201) throw new Error(`${status}`);
  return /-?\d+$/.exec(headers.location ?? '')?.[0] as string;
}

async function addMany(name: string, count = 50): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => add(name)));
}

const idsIn = async (url: string): Promise<string[]> =>
  (await rowsOf<[string]>(url, 'SELECT id FROM pet ORDER BY id')).map(([id]) => id);
const sorted = (ids: string[]): string[] => [...ids].sort((a, b) => Number(BigInt(a) - BigInt(b)));

test('the service runs on a database that pg_dump and pg_restore have made', async () => {
  await addMany('dumped');
  await run(block('sh', 'pg_dump', 'pg_dump'), { OWNER_URL: ownerUrl });
  await administer(server.url, `CREATE DATABASE again OWNER ${DATABASE}_owner`);
  await run(block('sh', 'pg_dump', 'pg_restore'), { NEW_DATABASE_URL: databaseUrl(server.url, 'again') });
  const url = databaseUrl(serviceUrl, 'again');
  expect(await idsIn(url)).toEqual(await idsIn(serviceUrl));

  const [other, there] = await start({ DATABASE_URL: url });
  const { status, headers } = await there.post('/v1/pets', { name: 'next', categoryId: 7 });
  expect([status, headers.location]).toEqual([
    201,
    expect.stringMatching(new RegExp(`/${Number((await idsIn(serviceUrl)).at(-1)) + 1}$`)),
  ]);
  await other.stop('SIGTERM');
}, 120_000);

test('the embedded engine: a copy of its directory brings its pets back, and move takes them to PostgreSQL', async () => {
  const dataDir = join(backup, 'embedded');
  const embedded = async (): Promise<[string, string]> => {
    const [other, there] = await start({ DATA_DIR: dataDir });
    const { headers } = await there.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    const { text } = await there.get('/v1/pets');
    await other.stop('SIGTERM');
    return [headers.location ?? '', text];
  };
  const [first] = await embedded();
  await run(block('sh', 'The embedded engine', 'cp -a "$DATA_DIR"'), { DATA_DIR: dataDir });
  const [second] = await embedded();
  await run(block('sh', 'The embedded engine', 'mv "$DATA_DIR"'), { DATA_DIR: dataDir });
  const [again, pets] = await embedded();
  expect([first, second, again].map((location) => /\d+$/.exec(location)?.[0])).toEqual(['1', '2', '2']);

  await administer(server.url, `CREATE DATABASE moved OWNER ${DATABASE}_owner`);
  const to = databaseUrl(ownerUrl, 'moved');
  await run(block('sh', 'Move to PostgreSQL'), { DATA_DIR: dataDir, NEW_OWNER_URL: to });
  const [other, there] = await start({ DATABASE_URL: to });
  expect((await there.get('/v1/pets')).text).toBe(pets);
  expect((await there.post('/v1/pets', { name: 'next', categoryId: 7 })).headers.location).toMatch(/\/3$/);
  await other.stop('SIGTERM');
}, 180_000);

test('point-in-time recovery restores every pet that was acknowledged before an accidental DELETE', async () => {
  await run(block('sh', 'Point in time', 'pg_basebackup'), { REPLICATION_URL: server.url });
  await addMany('behind the base backup', 200);
  const before = await idsIn(serviceUrl);
  const acknowledged = [...before, ...(await addMany('just before', 200))];
  const [[moment] = ['']] = await rowsOf<[string]>(serviceUrl, 'SELECT clock_timestamp()::text');
  await sleep(50);
  await rowsOf(ownerUrl, 'DELETE FROM pet');
  const late = await addMany('too late');
  await rowsOf(server.url, 'SELECT pg_switch_wal()');
  const [[segment] = ['']] = await rowsOf<[string]>(server.url, `SELECT pg_walfile_name(pg_current_wal_lsn() - 1)`);
  for (const deadline = Date.now() + 30_000; !existsSync(join(backup, 'wal', segment)); await sleep(50)) {
    if (Date.now() > deadline) throw new Error(`${segment} is not archived.`);
  }
  await service.stop('SIGTERM');
  await server.crash();

  const port = await freePort();
  restored = join(backup, 'restored');
  const startedAt = performance.now();
  await run(block('sh', 'Point in time', 'recovery.signal'), {
    RESTORED: restored,
    RESTORED_PORT: String(port),
    MOMENT: moment,
  });
  const url = new URL(serviceUrl);
  url.port = String(port);
  let isRecovering = true;
  while (isRecovering) [[isRecovering] = [true]] = await rowsOf<[boolean]>(url.href, 'SELECT pg_is_in_recovery()');
  report('point in time', { pets: acknowledged.length, ms: Math.round(performance.now() - startedAt) });
  expect(await idsIn(url.href)).toEqual(sorted(acknowledged));
  expect(late).toHaveLength(50);

  [service, client] = await start({ DATABASE_URL: url.href });
  expect((await client.get('/v1/pets?limit=100')).json).toHaveLength(100);
  expect(acknowledged).not.toContain(await add('after the restore'));
}, 180_000);

import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { createEmptyTestDatabase, createTestDatabase, engine, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { ServiceProcess } from '../support/service-process.js';

/*
 * A start that must fail ends with exit code 1 and one line on standard error, which says what to do.
 */

// Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

let database: TestDatabase;
/** Working directory of the processes, where no `.env` is. */
let home: string;
const running: ServiceProcess[] = [];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-start-'));
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const service of running.splice(0)) {
    await service.kill();
    expect(service.stdout).not.toMatch(/pets_[0-9A-Za-z]{12}|bootstrap-key-of-the-tests/);
  }
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

/** Starts the service; the end of the test ends it. */
function start(settings: Readonly<Record<string, string>>): ServiceProcess {
  const service = new ServiceProcess(settings, home);
  running.push(service);
  return service;
}

/** Starts a process that must not: exit code 1 and one line on standard error, which is returned. */
async function refusal(settings: Record<string, string>): Promise<string> {
  const service = start(settings);
  const code = await service.ended;
  expect([code, service.stderr]).toEqual([1, expect.stringMatching(/^petstore: [^\n]+[^\n\s]\n$/) as string]);
  // Nest's own report of a failure would be in the log.
  expect(service.stdout).not.toMatch(/"level":(50|60)|\n? +at /);
  return service.stderr.trimEnd();
}

async function sql(settings: Readonly<Record<string, string>>, statement: string): Promise<void> {
  const dataSource = await openDatabase(readConfig(settings));
  await dataSource.query(statement);
  await dataSource.destroy();
}

test('every wrong setting is named at once, and no value is printed', async () => {
  const numbers = [
    ...['PORT', 'DATABASE_POOL_SIZE', 'STATEMENT_TIMEOUT_MS', 'ACQUIRE_TIMEOUT_MS', 'MAX_BODY_BYTES'],
    ...[
      'HEADERS_TIMEOUT_MS',
      'REQUEST_TIMEOUT_MS',
      'KEEP_ALIVE_TIMEOUT_MS',
      'SHUTDOWN_DELAY_MS',
      'SHUTDOWN_TIMEOUT_MS',
    ],
  ];
  const words = ['MIGRATE_ON_START', 'LOG_LEVEL', 'AFTER_SUNSET'];
  const urls = ['DATABASE_URL', 'DATABASE_REPLICA_URLS', 'PUBLIC_BASE_URL', 'STAGING_BASE_URL', 'CORS_ORIGINS'];
  const names = [...numbers, ...words, ...urls, 'BOOTSTRAP_API_KEY'];
  const line = await refusal(Object.fromEntries(names.map((name) => [name, 'secret word'])));
  expect(line).toMatch(/^petstore: Wrong settings: .+\. \.env\.example describes every setting\.$/);
  expect(names.filter((name) => !new RegExp(`(: |; )${name} must be `).test(line))).toEqual([]);
  expect(line).not.toContain('secret');
});

test.each([
  ['BOOTSTRAP_API_KEY that is too short', 'secret-key-19-chars', /: BOOTSTRAP_API_KEY must be 20 to 255 characters/],
  [
    'BOOTSTRAP_API_KEY of our form with a wrong checksum',
    `pets_${'secret0'.repeat(7)}`,
    /^petstore: BOOTSTRAP_API_KEY looks like a key of this service, but its checksum is wrong/,
  ],
])('%s', async (_, key, expected) => {
  const line = await refusal({ ...database.settings, BOOTSTRAP_API_KEY: key });
  expect(line).toMatch(expected);
  expect(line).not.toContain('secret');
});

test('a port in use', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const line = await refusal({ ...database.settings, PORT: String(port) }).finally(() => server.close());
  expect(line).toBe(`petstore: Port ${port} is in use. Stop the process that uses it, or set PORT to a free one.`);
});

test.each(['203.0.113.1', '256.1.1.1'])('HOST=%s, which is no address of this machine', async (host) => {
  const line = await refusal({ ...database.settings, HOST: host });
  expect(line).toBe(`petstore: HOST is no address of this machine. Set it to one, or leave it out to listen on all.`);
});

test('an outdated schema with MIGRATE_ON_START=false names the command', async () => {
  const empty = await createEmptyTestDatabase();
  const line = await refusal({ ...empty.settings, MIGRATE_ON_START: 'false' });
  expect(line).toMatch(
    /^petstore: The database schema is outdated: \d+ migration\(s\) pending\. Run: npm run petstore -- migrate$/,
  );
  await empty.drop();
});

test('a schema that is newer than the code', async () => {
  await sql(
    database.settings,
    `INSERT INTO schema_migration (timestamp, name) VALUES (4102444800000, 'AddOwner4102444800000')`,
  );
  const line = await refusal({ ...database.settings, MIGRATE_ON_START: 'true' });
  expect(line).toMatch(
    /^petstore: The database schema is newer than this version: it has AddOwner4102444800000\. Start /,
  );
});

if (engine === 'postgresql') {
  test.each([
    ['where nobody listens', (url: URL) => (url.port = '1'), /: nothing answers at 127\.0\.0\.1:1\. Start PostgreSQL/],
    [
      'with a wrong password',
      (url: URL) => (url.password = 'secret-word'),
      / refuses user '.+'\. Correct user and password/,
    ],
    [
      'of a database that does not exist',
      (url: URL) => (url.pathname = '/none'),
      / has no database 'none'\. Create it \(createdb none\)/,
    ],
  ])('DATABASE_URL %s', async (_, change, expected) => {
    const url = new URL(database.settings.DATABASE_URL ?? '');
    change(url);
    const line = await refusal({ DATABASE_URL: url.href });
    expect(line).toMatch(/^petstore: DATABASE_URL: /);
    expect(line).toMatch(expected);
    expect(line).not.toMatch(/secret-word|:\/\//);
  });
} else {
  test('DATA_DIR that is a file', async () => {
    const file = join(home, 'file');
    await writeFile(file, '');
    const line = await refusal({ DATA_DIR: file });
    expect(line).toBe(
      `petstore: DATA_DIR '${file}' is a file. Set DATA_DIR to a directory that can be written, or DATABASE_URL.`,
    );
  });

  test('DATA_DIR that cannot be written', async () => {
    // Root, too, can make no directory there.
    const line = await refusal({ DATA_DIR: '/sys/petstore' });
    expect(line).toMatch(/^petstore: DATA_DIR '\/sys\/petstore' .+ Set DATA_DIR to a directory that can be written/);
  });

  test('DATA_DIR that another process uses, which goes on', async () => {
    const first = start({ ...database.settings });
    const origin = await first.origin();
    const line = await refusal({ ...database.settings });
    expect(line).toBe(
      `petstore: DATA_DIR '${database.settings.DATA_DIR}' is in use by process ${first.pid}. Stop it, or set another DATA_DIR.`,
    );
    expect((await new HttpClient(origin).get('/health/ready')).status).toBe(200);
  });
}

test('.env that cannot be read stops the start in one line', async () => {
  await mkdir(join(home, '.env'));
  const service = start({ ...database.settings });
  expect(await service.ended).toBe(1);
  expect(service.stderr).toMatch(/^petstore: \.env cannot be read: .+\. Make it a readable file, or remove it\.\n$/);
});

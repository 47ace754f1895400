import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  createEmptyTestDatabase,
  createTestDatabase,
  engine,
  testOnce,
  type TestDatabase,
} from '../support/database.js';
import { handedOver } from '../support/engines.js';
import { HttpClient } from '../support/http-client.js';
import { administer } from '../support/postgresql-database.js';
import { freePort } from '../support/programs.js';
import { until } from '../support/until.js';
import { DatabaseProxy } from '../faults/support/database-proxy.js';
import { type Change, installWithChanged } from './support/changed-package.js';
import { Services } from './support/services.js';

/*
 * The service as a process: its output at the start, and its end. A refused start ends with exit code 1 and one line on
 * standard error that says what to do.
 */

// Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const BOOTSTRAP_API_KEY = 'bootstrap-key-of-the-tests';
const ROOT = join(import.meta.dirname, '../..');
const CLI = join(ROOT, 'dist/src/cli.js');

let database: TestDatabase;
const services = new Services();
beforeEach(async () => (database = await createTestDatabase()));
afterEach(() => database.drop());

test('runs until SIGTERM, and ends with exit code 0', async () => {
  const service = services.start({ ...database.settings, BOOTSTRAP_API_KEY, LOG_LEVEL: 'debug' });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  expect((await client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).status).toBe(201);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(service.stderr).toMatch(
    /^The Pet Store Service listens on \S+\nTo make an API key: .+\nDocumentation: \S+\n$/,
  );
  const lines = service.stdout.trim().split('\n');
  const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect(messages).toEqual(expect.arrayContaining(['request', 'Nest application successfully started']));
  expect(service.stdout).not.toContain(BOOTSTRAP_API_KEY);
});

/** Files that a start on PostgreSQL loads at most. Stock Nest with the same libraries loads 2,344. */
const MOST_FILES = 1_900;
/** Packages that a start does not need, and those that the bundle contains. */
const NOT_LOADED = [
  'yaml',
  'pino-pretty',
  'marked',
  '@electric-sql/pglite',
  'ioredis',
  '@opentelemetry/sdk-node',
].concat(...['@nestjs/swagger', 'es-toolkit', 'prom-client']);

testOnce('the bundle that production starts serves what the modules do, and a start loads few files', async () => {
  // Node writes which files it has loaded.
  const coverage = join(services.home, 'coverage');
  const starts = services.start({ ...database.settings, NODE_V8_COVERAGE: coverage });
  await starts.origin();
  expect(await starts.stop('SIGTERM')).toBe(0);
  const [report = ''] = await readdir(coverage);
  const { result } = JSON.parse(await readFile(join(coverage, report), 'utf8')) as { result: { url: string }[] };
  const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'));
  const packages = new Set(files.map((url) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]));
  expect(files.filter((url) => url.includes('/dist/src/') || url.includes('/dist/libs/edge/'))).toEqual([]);
  expect(packages).toContain('@nestjs/core');
  expect(NOT_LOADED.filter((name) => packages.has(name))).toEqual([]);
  expect(files.length).toBeLessThan(MOST_FILES);

  const client = new HttpClient(await services.start(database.settings).origin());
  const published = await readFile(join(ROOT, 'openapi.json'), 'utf8');
  expect((await client.get('/openapi.json', { apiKey: null })).text).toBe(published);
  for (const path of ['/openapi.yaml', '/docs', '/docs/guide', '/docs/assets/swagger-ui.css']) {
    expect([path, (await client.get(path, { apiKey: null })).status]).toEqual([path, 200]);
  }
});

if (engine === 'embedded') {
  test('the first start prints an API key with a command that works unchanged; the second start keeps key and pets', async () => {
    // Only host and port are set, as after a plain `npm start`.
    const first = services.start({});
    const origin = await first.origin();
    const key = /^ {2}export API_KEY=(pets_\w{49})$/m.exec(first.stderr)?.[1] ?? '';
    expect(first.stderr).toMatch(/^The Pet[^]+\n\nYour API key[^]+\n\nAdd a pet:\n[^]+\n\nDocumentation: \S+\n$/);
    const lines = first.stderr.split('\n').filter((line) => line.startsWith('  '));
    const { stdout } = await promisify(execFile)('bash', ['-c', lines.join('\n')]);
    const pet = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}';
    expect(stdout).toBe(pet);
    expect(first.stdout).not.toContain(key);
    expect(await first.stop('SIGTERM')).toBe(0);
    expect(existsSync(join(services.home, '.data', 'postgres'))).toBe(true);

    const second = services.start({ PORT: new URL(origin).port });
    expect(await second.origin()).toBe(origin);
    expect(second.stderr).not.toMatch(/API_KEY|pets_/);
    const answer = await new HttpClient(origin, key).get('/v1/pets?limit=1');
    expect([answer.status, answer.text]).toEqual([200, `[${pet}]`]);
  });
}

describe('a start is refused, and the line says what to do:', () => {
  testOnce('a BOOTSTRAP_API_KEY that looks like a key of this service but has a wrong checksum', async () => {
    const line = await services.refusal({ ...database.settings, BOOTSTRAP_API_KEY: `pets_${'secret0'.repeat(7)}` });
    expect(line).toMatch(/^petstore: BOOTSTRAP_API_KEY looks like a key of this service, but its checksum is wrong/);
    expect(line).not.toContain('secret');
  });

  testOnce('arguments, which only commands have', async () => {
    const main = join(ROOT, 'dist/bundle/main.js');
    expect(await services.refusal(database.settings, [main, '--help'])).toBe(
      'petstore: The service takes no arguments such as --help: .env.example describes its settings. For commands: npm run petstore -- --help.',
    );
  });

  testOnce.each(['203.0.113.1', '256.1.1.1'])('HOST=%s, which is no address of this machine', async (host) => {
    const line = await services.refusal({ ...database.settings, HOST: host });
    expect(line).toMatch(/^petstore: .+\. Set HOST to an address of this machine, or PORT to one above 1023\.$/);
  });

  if (engine === 'postgresql') {
    test.each([
      [
        'of a database that does not exist',
        (url: URL) => (url.pathname = '/none'),
        / cannot be used: database "none" does not exist\. Create the database/,
      ],
      [
        'of a server without TLS',
        (url: URL) => (url.search = '?sslmode=verify-full'),
        / cannot be used: The server does not support SSL connections\. Correct host, port, .+, sslmode /,
      ],
      [
        'with a certificate that is no file',
        (url: URL) => (url.search = '?sslrootcert=/none.pem'),
        /: its file '\/none\.pem' cannot be read \(ENOENT\)\./,
      ],
    ])('DATABASE_URL %s', async (_, change, expected) => {
      const url = new URL(database.settings.DATABASE_URL ?? '');
      change(url);
      const line = await services.refusal({ DATABASE_URL: url.href });
      expect(line).toMatch(/^petstore: DATABASE_URL: /);
      expect(line).toMatch(expected);
      expect(line).not.toContain('://');
    });

    test('a proxy without a database behind it: a command ends with one line, and a start waits for the database', async () => {
      const { DATABASE_URL: behind = '' } = database.settings;
      const proxy = await DatabaseProxy.start(behind);
      const url = new URL(proxy.url);
      proxy.switchTo('postgresql://127.0.0.1:1');
      const fault = `petstore: DATABASE_URL: PostgreSQL at ${url.host} cannot be used: `;
      for (const sslmode of ['', '?sslmode=verify-full']) {
        const settings = { DATABASE_URL: url.href + sslmode };
        expect(await services.refusal(settings, [CLI, 'keys', 'list'])).toContain(fault);
      }
      const service = services.start({ DATABASE_URL: url.href });
      const free = await freePort();
      const late = services.start({ DATABASE_URL: url.href, PORT: String(free) });
      await until(() => service.stderr !== '' && late.stderr !== '');
      const other = createServer().listen(free);
      proxy.switchTo(behind);
      await service.origin();
      expect(service.stderr).toContain(fault);
      expect(service.stderr).toContain(' The start waits for at most 120 s.\n');
      expect([await late.ended, late.stderr.split('\n').slice(1)]).toEqual([
        1,
        [`petstore: Port ${free} is in use. Stop the process that uses it, or set PORT to a free one.`, ''],
      ]);
      await service.kill();
      other.close();
      await proxy.stop();
    });

    test.each(['LATIN1', 'SQL_ASCII'])('a database in %s: start and migrate name the remedy', async (encoding) => {
      const server = handedOver('serverUrl');
      const name = `petstore_${encoding.toLowerCase()}`;
      const url = new URL(database.ownerSettings.DATABASE_URL ?? '');
      url.pathname = `/${name}`;
      await administer(server, `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`);
      try {
        for (const program of [undefined, [CLI, 'migrate'], [CLI, 'keys', 'list']]) {
          expect(await services.refusal({ DATABASE_URL: url.href }, program)).toBe(
            `petstore: DATABASE_URL: the database '${name}' has the encoding ${encoding}, which cannot store every text. ` +
              `Make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and move the data by pg_dump and psql.`,
          );
        }
      } finally {
        await administer(server, `DROP DATABASE ${name} WITH (FORCE)`);
      }
    });

    test('a database user without rights can neither migrate nor start, list keys or add pets', async () => {
      const role = 'petstore_without_rights';
      const urlOf = (settings: Readonly<Record<string, string>>): string => {
        const url = new URL(settings.DATABASE_URL ?? '');
        Object.assign(url, { username: role, password: 'secret-word' });
        return url.href;
      };
      await administer(handedOver('serverUrl'), `DROP ROLE IF EXISTS ${role}`);
      await administer(handedOver('serverUrl'), `CREATE ROLE ${role} LOGIN PASSWORD 'secret-word'`);
      try {
        const empty = await createEmptyTestDatabase();
        const toEmpty = { DATABASE_URL: urlOf(empty.settings) };
        const settings = { DATABASE_URL: urlOf(database.settings) };
        for (const [object, line] of [
          ['schema public', await services.refusal(toEmpty, [CLI, 'migrate'])],
          ['schema public', await services.refusal({ ...toEmpty, MIGRATE_ON_START: 'true' })],
        ] as const) {
          expect(line).toContain(`petstore: PostgreSQL refuses: permission denied for ${object}`);
          expect(line).toMatch(
            / Grant the user of DATABASE_URL what "Roles and rights" of docs\/operating\.md lists; migrate and move need the owner\.$/,
          );
        }
        for (const program of [undefined, [CLI, 'keys', 'list'], [CLI, 'seed', '--count', '1']]) {
          expect(await services.refusal(settings, program)).toMatch(
            /^petstore: The role of the service lacks rights\. As the owner, run: GRANT SELECT, INSERT, UPDATE ON api_key TO /,
          );
        }
        await empty.drop();
      } finally {
        await administer(handedOver('serverUrl'), `DROP ROLE ${role}`);
      }
    });

    test('a read-only database where rows must be added; a migrate without pending migrations succeeds', async () => {
      const { pathname } = new URL(database.settings.DATABASE_URL ?? '');
      await administer(
        handedOver('serverUrl'),
        `ALTER DATABASE ${pathname.slice(1)} SET default_transaction_read_only = on`,
      );
      const expected =
        /^petstore: PostgreSQL refuses: cannot execute \w+ in a read-only transaction: .+ the primary\.$/;
      const withKey = { ...database.settings, BOOTSTRAP_API_KEY: 'bootstrap-key-of-the-tests' };
      expect(await services.refusal(withKey)).toMatch(expected);
      expect(await services.refusal(database.settings, [CLI, 'keys', 'create', '--client', 'x'])).toMatch(expected);
      // No migration is pending, so nothing is written.
      const migrated = services.start(database.ownerSettings, [CLI, 'migrate']);
      expect([await migrated.ended, migrated.stdout]).toEqual([0, 'The schema is current.\n']);
    });
  }

  testOnce('a release of @nestjs/swagger with which responses would have other members', async () => {
    const changes: Change[] = [
      ['dist/decorators/helpers.js', '`:${String(propertyKey)}`', 'String(propertyKey)'],
      ['dist/services/model-properties-accessor.js', "key.charAt(0) === ':' && ", ''],
      ['dist/services/model-properties-accessor.js', '.map((key) => key.slice(1))', ''],
    ];
    const program = await installWithChanged('@nestjs/swagger', changes, services.home);
    expect(await services.refusal(database.settings, program)).toContain(
      'does not fit the installed version of a dependency: class-validator or @nestjs/swagger: members are written as {"declared":2}',
    );
  });

  testOnce('an unreadable .env', async () => {
    await mkdir(join(services.home, '.env'));
    const service = services.start({ ...database.settings });
    expect(await service.ended).toBe(1);
    expect(service.stderr).toMatch(/^petstore: \.env cannot be read: .+\. Make it a readable file, or remove it\.\n$/);
  });
});

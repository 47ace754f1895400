import { appendFile, mkdir, mkdtemp, chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, testOnce, type TestDatabase } from '../support/database.js';
import { rowsOf } from '../support/own-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { Services } from './support/services.js';

/*
 * Settings as people write them: each is read as it was meant, or one line says why not.
 */

import.meta.jest.setTimeout(120_000);

const CLI = join(import.meta.dirname, '../../dist/src/cli.js');

let home: string;
let services: Services;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-settings-'));
  services = new Services(home);
});
afterEach(async () => {
  await services.kill();
  await rm(home, { recursive: true, force: true });
});

describe('.env', () => {
  let database: TestDatabase;
  beforeEach(async () => (database = await createTestDatabase()));
  afterEach(() => database.drop());

  testOnce('with a byte order mark: its first line counts, too', async () => {
    await writeFile(join(home, '.env'), `\uFEFFDATABASE_URL=${database.settings.DATABASE_URL}\r\nLOG_LEVEL=silent\r\n`);
    const service = services.start();
    await service.origin();
    expect(service.stdout).toBe('');
    // The embedded database would print its first key.
    expect(service.stderr).toMatch(
      /^The Pet Store Service listens on \S+\nTo make an API key: .+\nDocumentation: \S+\n$/,
    );
  });

  testOnce('in UTF-16: neither the start nor a command goes on with defaults', async () => {
    await writeFile(join(home, '.env'), Buffer.from('\uFEFFDATABASE_URL=postgresql://secret\r\n', 'utf16le'));
    for (const program of [undefined, [CLI, 'keys', 'list']]) {
      const line = await services.refusal({}, program);
      expect(line).toBe(
        'petstore: .env cannot be read: it is UTF-16, as > of Windows PowerShell writes it, or damaged: it has bytes that are 0. ' +
          'Save it as UTF-8.',
      );
    }
  });

  testOnce('with names that nobody knows: one warning, also by commands', async () => {
    await writeFile(join(home, '.env'), 'DATABASE_ULR=postgresql://secret\nORDERS_URL=secret\n');
    const warning =
      'petstore: .env sets what is no setting of the service: DATABASE_ULR (did you mean DATABASE_URL?), ORDERS_URL; ' +
      'the environment sets what is no setting of the service: LOG_LEVLE (did you mean LOG_LEVEL?).\n';
    const settings = { ...database.settings, LOG_LEVLE: 'secret', PETSTORE_PORT: 'tcp://10.0.0.1:80' };
    const service = services.start(settings);
    await service.origin();
    expect(service.stderr).toMatch(
      /^petstore: [^\n]+\nThe Pet Store Service listens on \S+\nTo make [^\n]+\nDocumentation: \S+\n$/,
    );
    expect(service.stderr.slice(0, warning.length)).toBe(warning);
    const command = services.start(settings, [CLI, 'keys', 'list', '--json']);
    expect([await command.ended, JSON.parse(command.stdout), command.stderr]).toEqual([0, [], warning]);
    expect(service.stdout + command.stdout).not.toContain('secret');
  });

  testOnce(
    'with settings that are gone: one warning each in the log, where they did something, and no other',
    async () => {
      await writeFile(join(home, '.env'), 'DATABASE_REPLICA_URLS=postgresql://secret\nWEB_CONCURRENCY=1\n');
      const warningsOf = async (environment: Record<string, string>): Promise<string[]> => {
        const service = services.start({ ...database.settings, ...environment });
        await service.origin();
        expect(service.stderr).toMatch(/^The Pet Store Service listens on /);
        expect(await service.stop('SIGTERM')).toBe(0);
        expect(service.stdout).not.toContain('secret');
        const lines = service.stdout.split('\n').filter((line) => line !== '');
        const log = lines.map((line) => JSON.parse(line) as { level: number; context?: string; msg: string });
        return log.filter(({ level, context }) => level === 40 && context === 'Settings').map(({ msg }) => msg);
      };
      const replicas =
        'DATABASE_REPLICA_URLS has no effect any more. DATABASE_URL serves all reads: delete the setting.';
      const processes =
        'WEB_CONCURRENCY has no effect any more. ' +
        'Start an instance for each core behind a proxy, and delete the setting.';
      expect(await warningsOf({})).toEqual([replicas]);
      expect(await warningsOf({ WEB_CONCURRENCY: '2' })).toEqual([processes, replicas]);
      expect(await warningsOf({ DATABASE_REPLICA_URLS: '', FAST_PATHS: 'off' })).toEqual([
        'FAST_PATHS has no effect any more. The service has one way for each thing: delete the setting.',
      ]);
    },
  );
});

describe('DATABASE_URL', () => {
  let server: PostgresqlServer;
  /** It has a colon and a blank, as the sockets of cloud proxies may. */
  let sockets: string;
  let directory: string;
  let port: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'petstore-'));
    sockets = join(directory, 'shop:eu 1:db');
    await mkdir(sockets);
    // PostgreSQL may run as another user.
    await chmod(directory, 0o755);
    await chmod(sockets, 0o777);
    server = await startPostgresqlServer({ unix_socket_directories: sockets });
    ({ port } = new URL(server.url));
    await rowsOf(server.url, `SET password_encryption = 'md5'; CREATE ROLE by_md5 LOGIN PASSWORD 'a b/c@d?e#f%'`);
    await rowsOf(server.url, `CREATE ROLE by_cleartext LOGIN PASSWORD 'x'; CREATE ROLE by_cert LOGIN`);
    const rules = join(server.data, 'pg_hba.conf');
    const before = await readFile(rules, 'utf8');
    await writeFile(
      rules,
      'host all by_md5 all md5\nhost all by_cleartext all password\nhost all by_cert all reject\n',
    );
    await appendFile(rules, before);
    await rowsOf(server.url, 'SELECT pg_reload_conf()');
  });
  afterAll(async () => {
    await server.stop();
    await rm(directory, { recursive: true });
  });

  testOnce.each([
    [
      'in a parameter, after an empty host',
      (at: string) => `postgresql://postgres:petstore@/postgres?host=${at}&port=PORT`,
    ],
    [
      'in a parameter, without a user in front',
      (at: string) => `postgres:///?dbname=postgres&user=postgres&password=petstore&port=PORT&host=${at}`,
    ],
    ['in place of the host', (at: string) => `postgresql://postgres:petstore@${encodeURIComponent(at)}:PORT/postgres`],
  ])('names the directory of a socket: %s', async (_, uriOf) => {
    const uri = uriOf(sockets).replace('PORT', port);
    const settings = { DATABASE_URL: uri, REDIS_URL: 'redis://127.0.0.1:1' };
    const service = services.start({ ...settings, MIGRATE_ON_START: 'true', LOG_LEVEL: 'silent' });
    await service.origin();
    const command = services.start({ DATABASE_URL: server.url, DATABASE_DIRECT_URL: uri }, [CLI, 'migrate']);
    expect([await command.ended, command.stdout]).toEqual([0, 'The schema is current.\n']);
    expect(
      await rowsOf(server.url, `SELECT DISTINCT client_addr FROM pg_stat_activity WHERE application_name = 'petstore'`),
    ).toEqual([[null]]);
  });

  const refusalOf = (uri: string, more = {}): Promise<string> =>
    services.refusal({ DATABASE_URL: uri.replace('PORT', port), ...more });

  testOnce('names no socket that is there', async () => {
    const uri = `postgresql://postgres:petstore@/postgres?host=/nowhere&port=${port}`;
    // A start would wait for the database; a command does not.
    const line = await services.refusal({ DATABASE_URL: uri }, [CLI, 'migrate']);
    expect(line).toMatch(/^petstore: DATABASE_URL: no server responds at socket \/nowhere\. Start PostgreSQL/);
  });

  testOnce('names no user, and the system has none', async () => {
    expect(await refusalOf('postgresql://127.0.0.1:PORT/postgres', { USER: '' })).toMatch(
      /^petstore: DATABASE_URL: it names no user\. Add one to the URI/,
    );
  });

  testOnce('has a parameter that pg refuses: the line names no other server', async () => {
    expect(await refusalOf('postgresql://u@127.0.0.1:PORT/postgres?sslrootcert=/')).toMatch(
      /^petstore: DATABASE_URL: it cannot be used: EISDIR.*\. Correct its parameters\.$/,
    );
  });

  testOnce.each(['postgres', 'by_md5', 'by_cleartext'])(
    'has no password of the user %s, who needs one',
    async (user) => {
      const missing =
        `petstore: DATABASE_URL: PostgreSQL at 127.0.0.1:${port} wants a password of user '${user}', and none is set. ` +
        'Add it to the URI (postgresql://user:password@host:5432/database), or set PGPASSWORD.';
      expect(await refusalOf(`postgresql://${user}@127.0.0.1:PORT/postgres`)).toBe(missing);
      expect(await refusalOf(`postgresql://${user}@127.0.0.1:PORT/postgres`, { PGPASSWORD: 'wrong' })).toMatch(
        / refuses user '.+' \(password authentication failed for user ".+"\)\. Correct user and password/,
      );
    },
  );

  testOnce('has a password with special characters as they are, as far as they can mean nothing else', async () => {
    // Neither a database nor a schema is missing: the log-in has succeeded.
    expect(
      await refusalOf(`postgresql://by_md5:a b%2Fc@d%3Fe%23f%@127.0.0.1:PORT/postgres`, { MIGRATE_ON_START: 'false' }),
    ).toMatch(/^petstore: (The database schema is|The role of the service lacks rights)/);
  });

  testOnce('has a user whom pg_hba.conf refuses: the line has PostgreSQL’s reason', async () => {
    expect(await refusalOf('postgresql://by_cert:x@127.0.0.1:PORT/postgres')).toMatch(
      / refuses user 'by_cert' \(pg_hba\.conf rejects connection for host "127\.0\.0\.1", .+, no encryption\)\. Correct/,
    );
  });
});

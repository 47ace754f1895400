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

const services = new Services();

describe('.env', () => {
  let database: TestDatabase;
  beforeEach(async () => (database = await createTestDatabase()));
  afterEach(() => database.drop());

  testOnce('with a byte order mark: its first line counts, too, and the environment overrides it', async () => {
    await writeFile(
      join(services.home, '.env'),
      `\uFEFFDATABASE_URL=${database.settings.DATABASE_URL}\r\nLOG_LEVEL=wrong\r\n`,
    );
    const service = services.start({ LOG_LEVEL: 'silent' });
    await service.origin();
    expect(service.stdout).toBe('');
    // The embedded database would print its first key.
    expect(service.stderr).toMatch(
      /^The Pet Store Service listens on \S+\nTo make an API key: .+\nDocumentation: \S+\n$/,
    );
  });

  testOnce('with names that nobody knows: one warning, also by commands', async () => {
    await writeFile(join(services.home, '.env'), 'DATABASE_ULR=postgresql://secret\nORDERS_URL=secret\n');
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
    ['in a parameter, after an empty host', (at: string) => `postgresql://postgres:petstore@:PORT/postgres?host=${at}`],
    [
      'in a parameter, without a user in front',
      (at: string) => `postgres://:PORT/postgres?user=postgres&password=petstore&host=${at}`,
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
    const uri = `postgresql://postgres:petstore@:${port}/postgres?host=/nowhere`;
    // A start would wait for the database; a command does not.
    const line = await services.refusal({ DATABASE_URL: uri }, [CLI, 'migrate']);
    expect(line).toMatch(
      /^petstore: DATABASE_URL: PostgreSQL at socket \/nowhere cannot be used: .+ENOENT.+\. Start PostgreSQL/,
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
      expect(await refusalOf(`postgresql://${user}@127.0.0.1:PORT/postgres`)).toMatch(/ cannot be used: .*password/);
      expect(await refusalOf(`postgresql://${user}@127.0.0.1:PORT/postgres`, { PGPASSWORD: 'wrong' })).toMatch(
        / cannot be used: password authentication failed for user ".+"\. Correct user and password/,
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
      / cannot be used: pg_hba\.conf rejects connection for host "127\.0\.0\.1", .+, no encryption\. Correct/,
    );
  });
});

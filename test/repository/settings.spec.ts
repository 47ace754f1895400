import { readdirSync, readFileSync } from 'node:fs';
import { StartupError } from '#errors';
import { connectionsBeside } from '#http';
import { Config } from '#settings';
import { LOCK_TIMEOUT_MS } from '../../libs/postgres/src/schema/schema-lock.js';
import { environmentExample, withSettingsTable } from '../../scripts/settings-pages.js';
import { readConfig, type ServiceConfig, SETTINGS } from '../../src/settings.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('src/settings.ts has the settings of every library', () => {
  const doors = readdirSync(new URL('../../libs', import.meta.url)).map((library) => read(`libs/${library}/index.ts`));
  const declared = doors.flatMap((door) => door.match(/\b[A-Z_]+_SETTINGS\b/g) ?? []);
  expect(
    read('src/settings.ts')
      .match(/(?<=\.\.\.)[A-Z_]+_SETTINGS\b/g)
      ?.sort(),
  ).toEqual(['DEPRECATION_SETTINGS', ...declared].sort());
});

test('.env.example and the table of settings are those of the declarations: run `npm run generate`', () => {
  expect(read('.env.example')).toBe(environmentExample(SETTINGS));
  const page = read('docs/operating.md');
  expect(page).toBe(withSettingsTable(page, SETTINGS));
});

/** The settings that have a variable. */
const VARIABLES = Object.values(SETTINGS).filter(({ name }) => name !== '');

const DATABASE_URL = 'postgresql://user:password@db.example:5432/petstore';

function faultOf(environment: Record<string, string>): string {
  try {
    readConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(StartupError);
    return (error as Error).message;
  }
  throw new Error(`${JSON.stringify(environment)} is accepted.`);
}

test('every setting has a default; an empty value, or only white space, counts as not set; the result is frozen', () => {
  const config = readConfig({});
  expect(config).toBeInstanceOf(Config);
  expect(Object.isFrozen(config)).toBe(true);
  for (const value of ['', ' \t']) {
    const environment = Object.fromEntries(VARIABLES.map(({ name }) => [name, value]));
    expect(readConfig(environment)).toEqual(config);
  }
});

test.each(VARIABLES.filter(({ shown }) => shown !== ''))('the shown default of $name is its default', (setting) => {
  expect(readConfig({ [setting.name]: setting.shown })).toEqual(readConfig({}));
});

test('by default a request outlasts two waits of a migration for its lock', () => {
  const { acquireTimeoutMs, statementTimeoutMs } = readConfig({});
  expect(Math.min(acquireTimeoutMs, statementTimeoutMs)).toBeGreaterThan(2 * LOCK_TIMEOUT_MS);
});

test('PUBLIC_BASE_URL is converted to ASCII, and its default has the port of PORT', () => {
  expect(readConfig({ PUBLIC_BASE_URL: 'https://例え.jp/v1/' }).publicBaseUrl).toBe('https://xn--r8jz45g.jp/v1');
  expect(readConfig({ PORT: '8080' }).publicBaseUrl).toBe('http://localhost:8080/v1');
  expect(readConfig({ PORT: '0' }).publicBaseUrl).toBe('http://localhost:3000/v1');
});

const INTEGERS = Object.entries(SETTINGS).flatMap(([member, { name, accepts }]) => {
  const [, minimum, maximum] = /^(\d+) to (\d+)$/.exec(accepts) ?? [];
  return maximum === undefined ? [] : [[name, member, Number(minimum), Number(maximum)] as const];
});

test.each(INTEGERS)('%s (%s) is an integer from %i to %i', (name, member, minimum, maximum) => {
  for (const value of [minimum, maximum]) {
    expect(readConfig({ DATABASE_URL, [name]: ` ${value} ` })[member as keyof ServiceConfig]).toBe(value);
  }
  for (const value of [minimum - 1, maximum + 1, `${maximum}.5`, '1e3', '0x400', '1_024', 'many', '9'.repeat(400)]) {
    expect(faultOf({ DATABASE_URL, [name]: String(value) })).toBe(
      `Wrong settings: ${name} must be an integer between ${minimum} and ${maximum}. .env.example describes every setting.`,
    );
  }
});

test.each<[name: string, member: keyof ServiceConfig, choices: readonly string[], values?: readonly unknown[]]>([
  ['LOG_LEVEL', 'logLevel', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']],
  ['AFTER_SUNSET', 'afterSunset', ['remove', 'serve']],
  ['MIGRATE_ON_START', 'migrateOnStart', ['true', 'false'], [true, false]],
  ['FAST_PATHS', 'fastPaths', ['on', 'off'], [true, false]],
])('%s is one of its choices', (name, member, choices, values = choices) => {
  expect(choices.map((choice) => readConfig({ [name]: choice })[member])).toEqual(values);
  for (const wrong of ['never', choices[0]?.toUpperCase() ?? '', choices.join()]) {
    expect(faultOf({ [name]: wrong })).toContain(`${name} must be one of ${choices.join(', ')}.`);
  }
});

test.each([
  DATABASE_URL,
  'postgres://db.example/petstore',
  'postgresql://user@[::1]:5433/petstore?sslmode=require',
  'postgresql:///petstore?host=/var/run/postgresql',
])('DATABASE_URL and DATABASE_REPLICA_URLS may be %s', (url) => {
  const config = readConfig({ DATABASE_URL: url, DATABASE_REPLICA_URLS: ` ${url} ,, ${DATABASE_URL},` });
  expect([config.databaseUrl, config.databaseReplicaUrls]).toEqual([url, [url, DATABASE_URL]]);
});

const POSTGRESQL = 'a PostgreSQL URI such as postgresql://user:password@host:5432/database';

test.each([
  ['DATABASE_URL', 'mysql://user:secret@db.example/petstore', POSTGRESQL],
  ['DATABASE_URL', 'secret-host:5432/petstore', POSTGRESQL],
  ['DATABASE_URL', 'postgresql://', POSTGRESQL],
  ['DATABASE_URL', 'postgresql://secret1:5432,h2:5433/db', POSTGRESQL],
  ['DATABASE_URL', 'postgresql:///db?host=secret1,h2', POSTGRESQL],
  ['DATABASE_DIRECT_URL', 'secret', POSTGRESQL],
  ['DATABASE_REPLICA_URLS', `${DATABASE_URL},secret`, POSTGRESQL],
  ['REDIS_URL', 'http://secret.example', 'a Redis URI such as redis://user:password@host:6379/0'],
  ['REDIS_URL', 'redis:///0', 'a Redis URI'],
  ['BOOTSTRAP_API_KEY', 'secret'.padEnd(19, '0'), '20 to 255 characters of A-Z a-z 0-9'],
  ['BOOTSTRAP_API_KEY', 'secret key with white space', '20 to 255 characters'],
  ['BOOTSTRAP_API_KEY', '=secret=key=secret=key', '20 to 255 characters'],
  ['PUBLIC_BASE_URL', 'https://user:secret@api.example.com/v1', 'an http or https URL that ends in /v1'],
  ['PUBLIC_BASE_URL', 'ftp://secret.example.com/v1', 'an http or https URL that ends in /v1'],
  ['STAGING_BASE_URL', 'https://secret.example.com/v2', 'an http or https URL that ends in /v1'],
  ['CORS_ORIGINS', '*', 'origins such as https://app.example.com'],
  ['CORS_ORIGINS', 'https://app.example.com,https://secret.example.com/', 'origins such as https://app.example.com'],
  ['CORS_ORIGINS', 'https://App.example.com', 'origins such as https://app.example.com'],
  ['CORS_ORIGINS', 'https://app.example.com:443', 'origins such as https://app.example.com'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'secret:4318', 'an http or https URL such as http://collector.example:4318'],
])('%s must not be %s, which the message does not repeat', (name, value, expected) => {
  const fault = faultOf({ DATABASE_URL, [name]: value });
  expect(fault).toContain(`Wrong settings: ${name} must be ${expected}`);
  expect(fault).not.toContain('secret');
});

test('accepted: a Redis with TLS, an own key, several origins, addresses with a slash at the end', () => {
  const [redisUrl, bootstrapApiKey] = ['rediss://user:secret@redis.example:6380/1', 'A-key.of~our_own+form/1=='];
  const config = readConfig({
    REDIS_URL: redisUrl,
    BOOTSTRAP_API_KEY: bootstrapApiKey,
    CORS_ORIGINS: 'https://app.example.com , http://localhost:5173',
    STAGING_BASE_URL: 'http://localhost:8080/store/v1/',
  });
  const corsOrigins = ['https://app.example.com', 'http://localhost:5173'];
  const stagingBaseUrl = 'http://localhost:8080/store/v1';
  expect(config).toMatchObject({ redisUrl, bootstrapApiKey, corsOrigins, stagingBaseUrl });
});

test.each([
  [{ DATABASE_DIRECT_URL: DATABASE_URL }, 'DATABASE_DIRECT_URL needs DATABASE_URL'],
  [{ DATABASE_REPLICA_URLS: DATABASE_URL }, 'DATABASE_REPLICA_URLS needs DATABASE_URL'],
  [{ WEB_CONCURRENCY: '2' }, 'WEB_CONCURRENCY needs DATABASE_URL'],
])('%j contradicts an embedded database', (environment, fault) => {
  expect(faultOf(environment)).toContain(fault);
});

test('one line names all wrong settings, each once', () => {
  expect(faultOf({ PORT: 'x', DATABASE_REPLICA_URLS: 'y,z', LOG_LEVEL: 'w', DATABASE_URL })).toMatch(
    /^Wrong settings: PORT must be [^;]+; DATABASE_REPLICA_URLS must be [^;]+; LOG_LEVEL must be [^;]+\. \.env\.example describes every setting\.$/,
  );
});

test('a process takes no more connections than the limit of open files has room for', () => {
  expect(connectionsBeside(10, 10_000, Infinity)).toBe(10_000);
  expect(connectionsBeside(20, 10_000, 1_024)).toBe(904);
  expect(connectionsBeside(10, 10_000, 64)).toBe(1);
});

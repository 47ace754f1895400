import { StartupError } from '#errors';
import { Config, readConfig } from './config.js';
import { connectionsWithin } from './limits.js';
import { LOG_LEVELS, SETTINGS } from './settings.js';

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
    const environment = Object.fromEntries(Object.values(SETTINGS).map(({ name }) => [name, value]));
    expect(readConfig(environment)).toEqual(config);
  }
});

test.each(Object.values(SETTINGS).filter(({ shown }) => shown !== ''))(
  'the shown default of $name is its default',
  (setting) => {
    expect(readConfig({ [setting.name]: setting.shown })).toEqual(readConfig({}));
  },
);

test('PUBLIC_BASE_URL is converted to ASCII, and its default has the port of PORT', () => {
  expect(readConfig({ PUBLIC_BASE_URL: 'https://例え.jp/v1/' }).publicBaseUrl).toBe('https://xn--r8jz45g.jp/v1');
  expect(readConfig({ PORT: '8080' }).publicBaseUrl).toBe('http://localhost:8080/v1');
  expect(readConfig({ PORT: '0' }).publicBaseUrl).toBe('http://localhost:3000/v1');
});

test('MIGRATE_ON_START is by default true on the embedded engine and false with DATABASE_URL', () => {
  expect(readConfig({}).migrateOnStart).toBe(true);
  expect(readConfig({ DATABASE_URL }).migrateOnStart).toBe(false);
  expect(readConfig({ DATABASE_URL, MIGRATE_ON_START: 'true' }).migrateOnStart).toBe(true);
});

const INTEGERS = Object.entries(SETTINGS).flatMap(([member, { name, accepts }]) => {
  const [, minimum, maximum] = /^(\d+) to (\d+)$/.exec(accepts) ?? [];
  return maximum === undefined ? [] : [[name, member, Number(minimum), Number(maximum)] as const];
});

test.each(INTEGERS)('%s (%s) is an integer from %i to %i', (name, member, minimum, maximum) => {
  for (const value of [minimum, maximum]) {
    expect(readConfig({ DATABASE_URL, [name]: ` ${value} ` })[member as keyof Config]).toBe(value);
  }
  for (const value of [minimum - 1, maximum + 1, `${maximum}.5`, '1e3', '0x400', '1_024', 'many', '9'.repeat(400)]) {
    expect(faultOf({ DATABASE_URL, [name]: String(value) })).toBe(
      `Wrong settings: ${name} must be an integer between ${minimum} and ${maximum}. .env.example describes every setting.`,
    );
  }
});

test.each<[name: string, member: keyof Config, choices: readonly string[], values?: readonly unknown[]]>([
  ['LOG_LEVEL', 'logLevel', LOG_LEVELS],
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
  [{ WEB_CONCURRENCY: '2' }, 'WEB_CONCURRENCY must be 1 without DATABASE_URL'],
])('%j contradicts an embedded database', (environment, fault) => {
  expect(faultOf(environment)).toContain(fault);
});

test('one line names all wrong settings, each once', () => {
  expect(faultOf({ PORT: 'x', DATABASE_REPLICA_URLS: 'y,z', LOG_LEVEL: 'w', DATABASE_URL })).toMatch(
    /^Wrong settings: PORT must be [^;]+; DATABASE_REPLICA_URLS must be [^;]+; LOG_LEVEL must be [^;]+\. \.env\.example describes every setting\.$/,
  );
});

test('the header section has 10 s, or as long as the whole request', () => {
  expect(readConfig({}).headersTimeoutMs).toBe(10_000);
  expect(readConfig({ REQUEST_TIMEOUT_MS: '500' }).headersTimeoutMs).toBe(500);
});

test('a process takes no more connections than the limit of open files has room for', () => {
  expect(connectionsWithin(Infinity, 10)).toBe(10_000);
  expect(connectionsWithin(1_024, 20)).toBe(904);
  expect(connectionsWithin(64, 10)).toBe(1);
});

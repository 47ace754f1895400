import { readFileSync } from 'node:fs';
import { StartupError } from '#runtime';
import { configReader } from '#service';
import { Config, environmentExample } from '#settings';
import { LOCK_TIMEOUT_MS } from '../../libs/postgres/src/schema/schema-lock.js';
import { withSettingsTable } from '../../scripts/settings-pages.js';
import { settingsOf } from '../../libs/definition/src/read-settings.js';
import { PET_STORE } from '../../src/app.description.js';
import { type PetStoreConfig, readConfig } from '../support/config.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const SETTINGS = await settingsOf(PET_STORE);

test('.env.example and the table of settings are those of the declarations: run `npm run generate`', () => {
  expect(read('.env.example')).toBe(environmentExample(PET_STORE.info.title, SETTINGS));
  const page = read('docs/operating.md');
  expect(page).toBe(withSettingsTable(page, SETTINGS));
});

describe('settings of features', () => {
  const defined = (settings: Record<string, string>) => ({ ...PET_STORE, settings });
  const about = 'Address of\nthe partner.';

  test('are known and documented as those of the platform, and refused in quotes', async () => {
    const settings = await settingsOf(defined({ PARTNER_URL: about }));
    const text = '\n# Address of the partner. Accepts what its feature takes.\n#PARTNER_URL=\n';
    expect(environmentExample('Shop', settings)).toContain(text);
    const read = await configReader(defined({ PARTNER_URL: about }));
    expect(() => read({ PARTNER_URL: '"x"' })).toThrow('PARTNER_URL must be without quotes around it');
    expect(read({ PARTNER_URL: 'x' })).toMatchObject({ PARTNER_URL: 'x' });
  });

  test.each(['PORT', 'partnerUrl', 'constructor', 'PARTNER-URL'])('the name %s is refused', async (name) => {
    await expect(settingsOf(defined({ [name]: about }))).rejects.toThrow(`settings: '${name}' must be capital letters`);
  });
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

const NEVER_EMPTY = ['DATABASE_URL', 'DATA_DIR', 'REDIS_URL'];

test.each(NEVER_EMPTY)(
  '%s is refused where it is empty: the service would store or count elsewhere in silence',
  (name) => {
    expect(faultOf({ [name]: ' ' })).toContain(`${name} must be set to a value, or not at all: it is empty`);
  },
);

test('every setting has a default; other empty values, or only white space, count as not set; the result is frozen', () => {
  const config = readConfig({});
  expect(config).toBeInstanceOf(Config);
  expect(Object.isFrozen(config)).toBe(true);
  for (const value of ['', ' \t']) {
    const environment = Object.fromEntries(VARIABLES.map(({ name }) => [name, value]));
    for (const name of NEVER_EMPTY) delete environment[name];
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
    expect(readConfig({ DATABASE_URL, [name]: ` ${value} ` })[member as keyof PetStoreConfig]).toBe(value);
  }
  for (const value of [minimum - 1, maximum + 1, `${maximum}.5`, '1e3', '0x400', '1_024', 'many', '9'.repeat(400)]) {
    expect(faultOf({ DATABASE_URL, [name]: String(value) })).toBe(
      `Wrong settings: ${name} must be an integer between ${minimum} and ${maximum}. .env.example describes every setting.`,
    );
  }
});

test.each<[name: string, member: keyof PetStoreConfig, choices: readonly string[], values?: readonly unknown[]]>([
  ['LOG_LEVEL', 'logLevel', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']],
  ['AFTER_SUNSET', 'afterSunset', ['remove', 'serve']],
  ['MIGRATE_ON_START', 'migrateOnStart', ['true', 'false'], [true, false]],
])('%s is one of its choices', (name, member, choices, values = choices) => {
  expect(choices.map((choice) => readConfig({ [name]: choice })[member])).toEqual(values);
  for (const wrong of ['never', choices[0]?.toUpperCase() ?? '', choices.join()]) {
    expect(faultOf({ [name]: wrong })).toContain(`${name} must be one of ${choices.join(', ')}.`);
  }
});

test.each([
  [DATABASE_URL, ''],
  ['postgres://db.example/petstore', ''],
  ['postgresql://user@[::1]:5433/petstore?sslmode=disable', ''],
  ['postgresql://user@%2Frun%2Fpostgresql/petstore', ''],
  // The form of libpq in which a parameter names the host.
  ['postgresql://user@:5433/petstore?host=/run/postgresql', 'user@%2Frun%2Fpostgresql:5433/petstore'],
  ['postgresql:///petstore?host=/run/postgresql', '%2Frun%2Fpostgresql/petstore'],
  ['postgresql://ignored:5433/petstore?host=db.example', 'db.example:5433/petstore'],
  ['postgresql:///petstore?host=::1', '%3A%3A1/petstore'],
  ['postgresql://user:p@/petstore?host=/cloudsql/a:b:c', 'user:p@%2Fcloudsql%2Fa%3Ab%3Ac/petstore'],
  // pg 9 will take these modes for weaker ones.
  ['postgresql://h/db?sslmode=require', 'h/db?sslmode=verify-full'],
  ['postgresql://h/db?sslmode=require&uselibpqcompat=true', 'h/db?sslmode=require&uselibpqcompat=true'],
  ['postgresql://h/db?sslrootcert=system', 'h/db?sslmode=verify-full'],
  [
    'postgresql://h/db?sslmode=require&sslrootcert=system&uselibpqcompat=true',
    'h/db?sslmode=verify-full&uselibpqcompat=true',
  ],
  [
    'postgresql://h/db?connect_timeout=3&target_session_attrs=any&options=-c%20jit%3Doff',
    'h/db?connect_timeout=3&target_session_attrs=any&options=-c+jit%3Doff',
  ],
  // Characters of a password that nothing else can mean.
  ['postgresql://user:a b%c@d%2Fe:f+@h/db', 'user:a%20b%25c%40d%2Fe%3Af+@h/db'],
])('DATABASE_URL and DATABASE_DIRECT_URL may be %s', (url, read) => {
  const expected = read === '' ? url : `postgresql://${read}`;
  expect(readConfig({ DATABASE_URL: url }).databaseUrl).toBe(expected);
  expect(readConfig({ DATABASE_URL, DATABASE_DIRECT_URL: url }).databaseDirectUrl).toBe(expected);
});

test.each([
  ['secret1:5432,h2:5433/db', 'it names several hosts; name one'],
  ['/db?host=secret1,h2', 'it names several hosts; name one'],
  ['', 'it names no host'],
  ['user:secret@/petstore', 'it names no host'],
  ['user@:5432/petstore', 'it names no host'],
  ['user:1/secret@h/db', 'must have them percent-encoded'],
  ['user:sec/ret@h/db', 'must have them percent-encoded'],
  ['user:1?secret@h/db', 'must have them percent-encoded'],
  ['user:1#secret@h/db', 'must have them percent-encoded'],
  ['h/db?sslmode=requre', 'its sslmode must be one of disable, no-verify, '],
  ['h/db?sslmode=allow', 'its sslmode must be one of disable, no-verify, '],
  ['h/db?ssl=secret', 'it has a parameter that is not read; read are host, user, password, '],
  ['h/db?sslMode=require', 'it has a parameter that is not read; read are host, user, password, '],
  ['h/db?password=a&secret', 'it has a parameter that is not read; read are host, user, password, '],
  ['h/secret%23', 'pg reads no database with / ? # '],
  ['user:secret%ff@h/db', 'its percent-encoding is not that of UTF-8'],
  ['h/db?password=secret%ff', 'its percent-encoding is not that of UTF-8'],
])('DATABASE_URL must not be postgresql://%s, and the message says why', (rest, expected) => {
  const fault = faultOf({ DATABASE_URL: `postgresql://${rest}` });
  expect(fault).toContain(`Wrong settings: DATABASE_URL must be ${POSTGRESQL}: `);
  expect(fault).toContain(expected);
  expect(fault).not.toContain('secret');
});

test.each(VARIABLES)('$name is refused in quotes, and with a character that URLs would be read without', ({ name }) => {
  const control = 'tabs, line ends (of Windows files, too) and other control characters';
  for (const text of ['"secret"', "'secret'", '`secret`', 'sec\nret', 'sec\tret', 'sec\x1bret']) {
    const without = text.includes('secret') ? 'quotes around it' : control;
    expect(faultOf({ DATABASE_URL, [name]: text })).toBe(
      `Wrong settings: ${name} must be without ${without}. .env.example describes every setting.`,
    );
  }
});

const POSTGRESQL = 'a PostgreSQL URI such as postgresql://user:password@host:5432/database';
const ORIGINS = 'origins such as https://app.example.com, or capacitor://localhost of an app';

test.each([
  ['DATABASE_URL', 'mysql://user:secret@db.example/petstore', POSTGRESQL],
  ['DATABASE_URL', 'host=secret dbname=petstore', `${POSTGRESQL}: pairs such as host=… are not read`],
  ['DATABASE_URL', 'secret-host:5432/petstore', POSTGRESQL],
  ['DATABASE_URL', 'jdbc:postgresql://secret/db', POSTGRESQL],
  ['DATABASE_URL', 'postgresql://secret:many/db', POSTGRESQL],
  ['DATABASE_URL', 'postgresql:///db?host=secret&port=65536', POSTGRESQL],
  ['DATABASE_DIRECT_URL', 'secret', POSTGRESQL],
  ['REDIS_URL', 'http://secret.example', 'a Redis URI such as redis://user:password@host:6379/0'],
  ['REDIS_URL', 'redis:///0', 'a Redis URI'],
  ['REDIS_URL', 'redis://:sec/ret@redis.example', 'a Redis URI'],
  ['REDIS_URL', 'redis://:1/secret@redis.example', 'a Redis URI'],
  ['REDIS_URL', 'redis://:1#secret@redis.example', 'a Redis URI'],
  ['REDIS_URL', 'redis://redis.example/secret', 'a Redis URI'],
  ['REDIS_URL', 'redis://:secret%ff@redis.example', 'a Redis URI'],
  ['DATA_DIR', '~/secret', 'a path of at most 70 bytes'],
  ['DATA_DIR', '$HOME/secret', 'a path of at most 70 bytes'],
  ['BOOTSTRAP_API_KEY', 'secret'.padEnd(19, '0'), '20 to 255 characters of A-Z a-z 0-9'],
  ['BOOTSTRAP_API_KEY', 'secret key with white space', '20 to 255 characters'],
  ['BOOTSTRAP_API_KEY', '=secret=key=secret=key', '20 to 255 characters'],
  ['METRICS_TOKEN', 'secret'.padEnd(31, '0'), '32 to 255 characters of A-Z a-z 0-9'],
  ['METRICS_TOKEN', 'secret token with white space, of 32 characters', '32 to 255 characters'],
  ['PUBLIC_BASE_URL', 'https://user:secret@api.example.com/v1', 'an http or https URL that ends in /v1'],
  ['PUBLIC_BASE_URL', 'ftp://secret.example.com/v1', 'an http or https URL that ends in /v1'],
  ['PUBLIC_BASE_URL', 'https://secret.example.com/v2', 'an http or https URL that ends in /v1'],
  ['CORS_ORIGINS', '*', ORIGINS],
  ['CORS_ORIGINS', 'https://app.example.com,https://secret.example.com/', ORIGINS],
  ['CORS_ORIGINS', 'https://App.example.com', ORIGINS],
  ['CORS_ORIGINS', 'https://sécret.example.com', ORIGINS],
  ['CORS_ORIGINS', 'https://app.example.com:443', ORIGINS],
  ['CORS_ORIGINS', 'htps://secret.example.com', ORIGINS],
  ['CORS_ORIGINS', 'capacitor://secret/', ORIGINS],
  ['CORS_ORIGINS', 'file://secret', ORIGINS],
  ['KEEP_ALIVE_TIMEOUT_MS', '3600001', 'an integer between 100 and 3600000'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'secret:4318', 'an http or https URL such as http://collector.example:4318'],
])('%s must not be %s, which the message does not repeat', (name, value, expected) => {
  const fault = faultOf({ DATABASE_URL, [name]: value });
  expect(fault).toContain(`Wrong settings: ${name} must be ${expected}`);
  expect(fault).not.toContain('secret');
});

test('accepted: a Redis with TLS, an own key, several origins, addresses with a slash at the end', () => {
  const [redisUrl, bootstrapApiKey] = ['rediss://user:secret@redis.example:6380/1', 'A-key.of~our_own+form/1=='];
  const origins = 'https://app.example.com http://localhost:5173 capacitor://localhost chrome-extension://abcdefghij';
  const corsOrigins = origins.split(' ');
  const config = readConfig({
    REDIS_URL: redisUrl,
    BOOTSTRAP_API_KEY: bootstrapApiKey,
    CORS_ORIGINS: corsOrigins.join().replace(',', ' , '),
    KEEP_ALIVE_TIMEOUT_MS: '3600000',
    PUBLIC_BASE_URL: 'http://localhost:8080/store/v1/',
  });
  const productionBaseUrl = 'http://localhost:8080/store/v1';
  expect(config).toMatchObject({ redisUrl, bootstrapApiKey, corsOrigins, productionBaseUrl });
});

test('a % that begins no escape is one of the password, as in DATABASE_URL', () => {
  const redisUrl = 'redis://:50%25@redis.example';
  expect(readConfig({ REDIS_URL: 'redis://:50%@redis.example' })).toMatchObject({ redisUrl });
});

test('DATABASE_DIRECT_URL contradicts an embedded database', () => {
  expect(faultOf({ DATABASE_DIRECT_URL: DATABASE_URL })).toContain('DATABASE_DIRECT_URL needs DATABASE_URL');
});

test('one line names all wrong settings, each once', () => {
  expect(faultOf({ PORT: 'x', DATABASE_DIRECT_URL: 'y', LOG_LEVEL: 'w', DATABASE_URL })).toMatch(
    /^Wrong settings: PORT must be [^;]+; DATABASE_DIRECT_URL must be [^;]+; LOG_LEVEL must be [^;]+\. \.env\.example describes every setting\.$/,
  );
});

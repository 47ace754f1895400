import { readFileSync } from 'node:fs';
import { Config, FAST_PATHS, LOG_LEVELS, readConfig } from './config.js';
import { hostUris } from './settings/database-uris.js';
import type { TracingSettings } from './settings/tracing-settings.js';
import { StartupError } from './platform/errors/startup-error.js';

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

const DEFAULTS: Config = {
  port: 3000,
  host: '0.0.0.0',
  webConcurrency: 1,
  hangTimeoutMs: 30_000,
  databaseUrl: undefined,
  dataDir: '.data',
  databasePoolSize: 10,
  databaseDirectUrl: undefined,
  databasePasswordFile: undefined,
  databaseConnectionMaxAgeMs: 1_800_000,
  databaseReplicaUrls: [],
  replicaReads: 'fresh',
  migrateOnStart: true,
  readyWithoutDatabase: true,
  statementTimeoutMs: 5_000,
  acquireTimeoutMs: 3_000,
  bootstrapApiKey: undefined,
  publicBaseUrl: 'http://localhost:3000/v1',
  productionBaseUrl: undefined,
  stagingBaseUrl: undefined,
  logLevel: 'info',
  rateLimitPerMinute: 6_000,
  redisUrl: undefined,
  keyUsageRetentionDays: 400,
  maxBodyBytes: 65_536,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 75_000,
  writeTimeoutMs: 30_000,
  maxConnections: 10_000,
  maxRequestsInFlight: 1_000,
  maxEventStreams: 1_000,
  shutdownDelayMs: 0,
  shutdownLingerMs: 1_000,
  shutdownTimeoutMs: 15_000,
  corsOrigins: [],
  afterSunset: 'remove',
  tracing: undefined,
  fastPaths: FAST_PATHS,
};

describe('readConfig', () => {
  test('every setting has a default, and the result is frozen', () => {
    const config = readConfig({});
    expect(config).toBeInstanceOf(Config);
    expect({ ...config }).toEqual(DEFAULTS);
    expect(Object.isFrozen(config)).toBe(true);
  });

  test('an empty value, or only white space, counts as not set', () => {
    const names = [...settingsInCode()];
    expect({ ...readConfig(Object.fromEntries(names.map((name) => [name, '']))) }).toEqual(DEFAULTS);
    expect({ ...readConfig(Object.fromEntries(names.map((name) => [name, ' \t']))) }).toEqual(DEFAULTS);
  });

  test('PUBLIC_BASE_URL is converted to ASCII, because header fields contain it', () => {
    expect(readConfig({ PUBLIC_BASE_URL: 'https://例え.jp/v1/' }).publicBaseUrl).toBe('https://xn--r8jz45g.jp/v1');
  });

  test('the default of PUBLIC_BASE_URL has the port of PORT, or 3000 if the system chooses the port', () => {
    expect(readConfig({ PORT: '8080' }).publicBaseUrl).toBe('http://localhost:8080/v1');
    expect(readConfig({ PORT: '0' }).publicBaseUrl).toBe('http://localhost:3000/v1');
    expect(readConfig({ PORT: '8080', PUBLIC_BASE_URL: 'https://a.example/v1' }).publicBaseUrl).toBe(
      'https://a.example/v1',
    );
  });

  test('MIGRATE_ON_START is by default true on the embedded engine and false with DATABASE_URL', () => {
    expect(readConfig({ DATABASE_URL }).migrateOnStart).toBe(false);
    expect(readConfig({ DATABASE_URL, MIGRATE_ON_START: 'true' }).migrateOnStart).toBe(true);
    expect(readConfig({ MIGRATE_ON_START: 'false' }).migrateOnStart).toBe(false);
  });

  test.each<[name: string, property: keyof Config, minimum: number, maximum: number]>([
    ['PORT', 'port', 0, 65_535],
    ['MAX_CONNECTIONS', 'maxConnections', 1, 1_000_000],
    ['MAX_REQUESTS_IN_FLIGHT', 'maxRequestsInFlight', 1, 1_000_000],
    ['MAX_EVENT_STREAMS', 'maxEventStreams', 1, 1_000_000],
    ['DATABASE_POOL_SIZE', 'databasePoolSize', 1, 1_000],
    ['DATABASE_CONNECTION_MAX_AGE_MS', 'databaseConnectionMaxAgeMs', 1_000, 86_400_000],
    ['STATEMENT_TIMEOUT_MS', 'statementTimeoutMs', 100, 600_000],
    ['ACQUIRE_TIMEOUT_MS', 'acquireTimeoutMs', 100, 600_000],
    ['RATE_LIMIT_PER_MINUTE', 'rateLimitPerMinute', 0, 10_000_000],
    ['KEY_USAGE_RETENTION_DAYS', 'keyUsageRetentionDays', 30, 3_650],
    ['MAX_BODY_BYTES', 'maxBodyBytes', 1_024, 16_777_216],
    ['HEADERS_TIMEOUT_MS', 'headersTimeoutMs', 100, 600_000],
    ['REQUEST_TIMEOUT_MS', 'requestTimeoutMs', 100, 600_000],
    ['KEEP_ALIVE_TIMEOUT_MS', 'keepAliveTimeoutMs', 100, 600_000],
    ['WRITE_TIMEOUT_MS', 'writeTimeoutMs', 100, 600_000],
    ['SHUTDOWN_LINGER_MS', 'shutdownLingerMs', 0, 600_000],
    ['SHUTDOWN_DELAY_MS', 'shutdownDelayMs', 0, 600_000],
    ['SHUTDOWN_TIMEOUT_MS', 'shutdownTimeoutMs', 100, 600_000],
  ])('%s (%s) is an integer from %i to %i', (name, property, minimum, maximum) => {
    // HEADERS_TIMEOUT_MS must not be larger than REQUEST_TIMEOUT_MS.
    const beside: Record<string, string> =
      name === 'HEADERS_TIMEOUT_MS' ? { REQUEST_TIMEOUT_MS: '600000' } : { HEADERS_TIMEOUT_MS: '100' };
    for (const value of [minimum, minimum + 1, maximum - 1, maximum]) {
      expect(readConfig({ ...beside, [name]: String(value) })[property]).toBe(value);
    }
    expect(readConfig({ ...beside, [name]: ` ${maximum} ` })[property]).toBe(maximum);
    const wrong = [
      minimum - 1,
      maximum + 1,
      `${maximum}.5`,
      `-${maximum}`,
      '1e3',
      '0x400',
      '1_024',
      'many',
      '9'.repeat(400),
    ];
    for (const value of wrong) {
      expect(faultOf({ ...beside, [name]: String(value) })).toBe(
        `Wrong settings: ${name} must be an integer between ${minimum} and ${maximum}. .env.example describes every setting.`,
      );
    }
  });

  test.each<
    [name: string, property: 'logLevel' | 'afterSunset' | 'migrateOnStart' | 'replicaReads', choices: readonly string[]]
  >([
    ['LOG_LEVEL', 'logLevel', LOG_LEVELS],
    ['AFTER_SUNSET', 'afterSunset', ['remove', 'serve']],
    ['MIGRATE_ON_START', 'migrateOnStart', ['true', 'false']],
    ['REPLICA_READS', 'replicaReads', ['fresh', 'stale']],
  ])('%s is one of its choices', (name, property, choices) => {
    for (const choice of choices) {
      expect(String(readConfig({ [name]: choice })[property])).toBe(choice);
    }
    for (const wrong of ['never', choices[0]?.toUpperCase() ?? '', '1', choices.join()]) {
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

  test.each([
    ['postgresql://u:p@h1:5432,h2:5433/db?x=1', ['postgresql://u:p@h1:5432/db?x=1', 'postgresql://u:p@h2:5433/db?x=1']],
    ['postgresql://h1,[::1]:5433/db', ['postgresql://h1/db', 'postgresql://[::1]:5433/db']],
    ['postgresql://h1/db?target_session_attrs=read-write', ['postgresql://h1/db?target_session_attrs=read-write']],
    ['postgresql://a,b:c,d@h1,h2/db', ['postgresql://a,b:c,d@h1/db', 'postgresql://a,b:c,d@h2/db']],
  ])('DATABASE_URL may list hosts: %s', (url, uris) => {
    expect(hostUris(readConfig({ DATABASE_URL: url }).databaseUrl as string)).toEqual(uris);
  });

  test.each([
    ['postgresql://h1,h2:secret/db', 'DATABASE_URL must be a PostgreSQL URI'],
    ['postgresql:///db?host=h1,h2', 'DATABASE_URL must be a URI that lists hosts before the path'],
    ['postgresql://h1/db?target_session_attrs=standby', 'target_session_attrs is read-write or primary'],
  ])('DATABASE_URL must not be %s', (url, fault) => {
    expect(faultOf({ DATABASE_URL: url })).toContain(fault);
  });

  test('each of DATABASE_REPLICA_URLS names one host, and DATABASE_DIRECT_URL needs DATABASE_URL', () => {
    const url = `${DATABASE_URL}?target_session_attrs=any`;
    expect(faultOf({ DATABASE_URL, DATABASE_REPLICA_URLS: url })).toContain('URIs of one replica each');
    expect(faultOf({ DATABASE_DIRECT_URL: DATABASE_URL })).toContain('DATABASE_DIRECT_URL needs DATABASE_URL.');
    expect(faultOf({ DATABASE_URL, DATABASE_DIRECT_URL: 'secret' })).toContain(
      'DATABASE_DIRECT_URL must be a PostgreSQL',
    );
  });

  test.each(['redis://localhost:6379', 'rediss://user:secret@redis.example:6380/1'])('REDIS_URL may be %s', (url) => {
    expect(readConfig({ REDIS_URL: url }).redisUrl).toBe(url);
  });

  test.each(['localhost:6379', 'http://secret.example', 'redis://', 'redis:///0'])(
    'REDIS_URL must not be %s, which is not repeated',
    (url) => {
      const fault = 'REDIS_URL must be a Redis URI such as redis://user:password@host:6379/0';
      expect(faultOf({ REDIS_URL: url })).toBe(`Wrong settings: ${fault}. .env.example describes every setting.`);
    },
  );

  test.each([
    'secret-host:5432/petstore',
    'mysql://user:secret@db.example/petstore',
    'postgresql://',
    'postgresql://user:secret@db.example:99999/petstore',
    'secret',
  ])('DATABASE_URL and DATABASE_REPLICA_URLS must not be %s, which the message does not repeat', (url) => {
    const expected = 'must be a PostgreSQL URI such as postgresql://user:password@host:5432/petstore';
    const faults = [
      faultOf({ DATABASE_URL: url }),
      faultOf({ DATABASE_URL, DATABASE_REPLICA_URLS: `${DATABASE_URL},${url}` }),
    ];
    expect(faults[0]).toContain(`DATABASE_URL ${expected}.`);
    expect(faults[1]).toContain(`DATABASE_REPLICA_URLS ${expected}.`);
    expect(faults.join()).not.toContain('secret');
  });

  test('WEB_CONCURRENCY is an integer from 1 to 64, and above 1 it needs DATABASE_URL', () => {
    expect(readConfig({ WEB_CONCURRENCY: '1' }).webConcurrency).toBe(1);
    expect(readConfig({ WEB_CONCURRENCY: '64', DATABASE_URL }).webConcurrency).toBe(64);
    for (const wrong of ['0', '65', '-1', '1.5', 'auto']) {
      expect(faultOf({ WEB_CONCURRENCY: wrong, DATABASE_URL })).toContain(
        'WEB_CONCURRENCY must be an integer between 1 and 64.',
      );
    }
    expect(faultOf({ WEB_CONCURRENCY: '2' })).toContain('WEB_CONCURRENCY must be 1 without DATABASE_URL');
  });

  test('HANG_TIMEOUT_MS is an integer from 2000 to 600000', () => {
    expect(readConfig({ HANG_TIMEOUT_MS: '2000' }).hangTimeoutMs).toBe(2_000);
    for (const wrong of ['0', '1999', '600001', '30s']) {
      expect(faultOf({ HANG_TIMEOUT_MS: wrong })).toContain(
        'HANG_TIMEOUT_MS must be an integer between 2000 and 600000.',
      );
    }
  });

  test('READY_WITHOUT_DATABASE is true or false', () => {
    expect(readConfig({ READY_WITHOUT_DATABASE: 'false' }).readyWithoutDatabase).toBe(false);
    expect(faultOf({ READY_WITHOUT_DATABASE: 'no' })).toContain('READY_WITHOUT_DATABASE must be one of true, false.');
  });

  test('DATABASE_REPLICA_URLS needs DATABASE_URL', () => {
    expect(faultOf({ DATABASE_REPLICA_URLS: DATABASE_URL })).toContain('DATABASE_REPLICA_URLS needs DATABASE_URL.');
  });

  test.each(['a'.repeat(20), 'a'.repeat(255), 'A-key.of~our_own+form/1==', `pets_${'0'.repeat(49)}`])(
    'BOOTSTRAP_API_KEY may be %s',
    (key) => {
      expect(readConfig({ BOOTSTRAP_API_KEY: key }).bootstrapApiKey).toBe(key);
    },
  );

  test.each([
    'a'.repeat(19),
    'a'.repeat(256),
    'secret key with white space',
    'secret-key-with-ä-in-it',
    '=secret=key=secret=key',
  ])('BOOTSTRAP_API_KEY must not be %s, which the message does not repeat', (key) => {
    const fault = faultOf({ BOOTSTRAP_API_KEY: key });
    expect(fault).toContain('BOOTSTRAP_API_KEY must be 20 to 255 characters of A-Z a-z 0-9 - . _ ~ + /');
    expect(fault).not.toContain(key);
  });

  test.each<[name: string, property: keyof Config]>([
    ['PUBLIC_BASE_URL', 'publicBaseUrl'],
    ['PUBLIC_BASE_URL', 'productionBaseUrl'],
    ['STAGING_BASE_URL', 'stagingBaseUrl'],
  ])('%s is an http or https URL that ends in /v1', (name, property) => {
    for (const url of ['https://api.example.com/v1', 'http://localhost:8080/pets/v1']) {
      expect(readConfig({ [name]: url })[property]).toBe(url);
      expect(readConfig({ [name]: `${url}/` })[property]).toBe(url);
    }
    const wrong = [
      ...['api.example.com/v1', 'ftp://api.example.com/v1', 'https://api.example.com', 'https://api.example.com/v2'],
      ...[
        'https://api.example.com/v1?a=b',
        'https://api.example.com/v1#a',
        'https://user:secret@api.example.com/v1',
        'x',
      ],
    ];
    for (const url of wrong) {
      expect(faultOf({ [name]: url })).toContain(`${name} must be an http or https URL that ends in /v1.`);
    }
  });

  test('CORS_ORIGINS is a list of origins', () => {
    const origins = ['https://app.example.com', 'http://localhost:5173'];
    expect(readConfig({ CORS_ORIGINS: origins.join(' , ') }).corsOrigins).toEqual(origins);
    for (const wrong of [
      '*',
      'app.example.com',
      'https://app.example.com/',
      'https://app.example.com/path',
      'null',
      'ftp://a.example',
      'https://*.example.com',
      'https://App.example.com',
      'HTTPS://app.example.com',
      'https://app.example.com:443',
      'https://bücher.example',
      'https://user@app.example.com',
    ]) {
      expect(faultOf({ CORS_ORIGINS: `${origins[0]},${wrong}` })).toContain(
        'CORS_ORIGINS must be origins such as https://app.example.com, separated by commas: in lower case, without ' +
          'wildcard, default port, path or slash at the end.',
      );
    }
  });

  test('HEADERS_TIMEOUT_MS must not be larger than REQUEST_TIMEOUT_MS', () => {
    expect(readConfig({ HEADERS_TIMEOUT_MS: '500', REQUEST_TIMEOUT_MS: '500' }).headersTimeoutMs).toBe(500);
    expect(faultOf({ HEADERS_TIMEOUT_MS: '501', REQUEST_TIMEOUT_MS: '500' })).toContain(
      'HEADERS_TIMEOUT_MS must not be larger than REQUEST_TIMEOUT_MS.',
    );
  });

  test('HOST and DATA_DIR are used unchanged', () => {
    const { host, dataDir } = readConfig({ HOST: '::1', DATA_DIR: '/var/lib/pet store' });
    expect([host, dataDir]).toEqual(['::1', '/var/lib/pet store']);
  });

  test.each([
    ['on', [...FAST_PATHS]],
    ['off', []],
    ['handler-calls', ['handler-calls']],
    ['shared-statements, handler-calls', ['handler-calls', 'shared-statements']],
  ])('FAST_PATHS=%s is accepted', (value, expected) => {
    expect(readConfig({ FAST_PATHS: value }).fastPaths).toEqual(expected);
  });

  test.each(['yes', 'on,off', 'handler-calls,no-such-path'])('FAST_PATHS=%s is refused', (value) => {
    expect(faultOf({ FAST_PATHS: value })).toMatch(/FAST_PATHS must be on, off, or some of express-prototypes/);
  });

  describe('tracing', () => {
    const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector.example:4318';
    const traced = (others: Record<string, string> = {}): TracingSettings =>
      readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT, ...others }).tracing as TracingSettings;

    test('needs an endpoint, and has the defaults of OpenTelemetry', () => {
      expect(traced()).toEqual({
        url: 'http://collector.example:4318/v1/traces',
        protocol: 'http/protobuf',
        headers: {},
        compression: 'none',
        timeoutMs: 10_000,
        sampler: 'parentbased_always_on',
        ratio: 1,
        resource: {},
        queueSize: 2_048,
        batchSize: 512,
        delayMs: 5_000,
      });
      expect(readConfig({ OTEL_SERVICE_NAME: 'shop', OTEL_TRACES_SAMPLER: 'always_on' }).tracing).toBeUndefined();
      expect(traced({ OTEL_SDK_DISABLED: 'true' })).toBeUndefined();
      expect(traced({ OTEL_SDK_DISABLED: 'TRUE' })).toBeUndefined();
      expect(traced({ OTEL_SDK_DISABLED: 'False' })).toBeDefined();
      expect(traced({ OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined();
    });

    test('its settings are not checked while tracing is off', () => {
      const wrong = { OTEL_TRACES_SAMPLER: 'ratio', OTEL_BSP_MAX_QUEUE_SIZE: '0', OTEL_RESOURCE_ATTRIBUTES: 'a' };
      expect(
        readConfig({ ...wrong, OTEL_TRACES_EXPORTER: 'console', OTEL_SDK_DISABLED: 'yes' }).tracing,
      ).toBeUndefined();
      expect(traced({ ...wrong, OTEL_TRACES_EXPORTER: 'console', OTEL_SDK_DISABLED: 'true' })).toBeUndefined();
      expect(traced({ ...wrong, OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined();
    });

    test.each([
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c.example/otlp/' }, 'https://c.example/otlp/v1/traces'],
      [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t.example/spans' }, 'http://t.example/spans'],
    ])('with %j spans go to %s', (settings, url) => {
      expect(traced(settings).url).toBe(url);
    });

    test('settings for traces override those for all signals, and the header fields of both are sent', () => {
      const settings = {
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
        OTEL_EXPORTER_OTLP_HEADERS: 'a=1,x-tenant=all',
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=Bearer%20secret%3D, x-tenant = shop',
        OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
        OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      };
      expect(traced(settings)).toMatchObject({
        protocol: 'http/json',
        headers: { a: '1', authorization: 'Bearer secret=', 'x-tenant': 'shop' },
        compression: 'gzip',
        timeoutMs: 500,
      });
    });

    test('OTEL_SERVICE_NAME overrides OTEL_RESOURCE_ATTRIBUTES', () => {
      const OTEL_RESOURCE_ATTRIBUTES = 'service.name=other,deployment.environment.name=staging';
      expect(traced({ OTEL_RESOURCE_ATTRIBUTES }).resource['service.name']).toBe('other');
      expect(traced({ OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME: 'shop' }).resource).toEqual({
        'service.name': 'shop',
        'deployment.environment.name': 'staging',
      });
    });

    test('OTEL_TRACES_SAMPLER_ARG is the share of a ratio sampler, and is ignored for other samplers', () => {
      const ratioOf = (sampler: string, argument: string): number =>
        traced({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument }).ratio;
      expect(ratioOf('traceidratio', '0.25')).toBe(0.25);
      expect(ratioOf('parentbased_traceidratio', '.5')).toBe(0.5);
      expect(ratioOf('xray', 'endpoint=http://localhost:2000')).toBe(1);
    });

    test('an export has no more spans than the queue', () => {
      expect(traced({ OTEL_BSP_MAX_QUEUE_SIZE: '100' })).toMatchObject({ queueSize: 100, batchSize: 100 });
      expect(
        faultOf({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '101' }),
      ).toContain('OTEL_BSP_MAX_EXPORT_BATCH_SIZE must be an integer between 1 and 100.');
    });

    test.each([
      ['OTEL_EXPORTER_OTLP_ENDPOINT', 'secret:4318', 'an http or https URL such as http://collector.example:4318'],
      ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'ftp://secret.example', 'an http or https URL'],
      ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http', 'one of http/protobuf, http/json, grpc'],
      ['OTEL_EXPORTER_OTLP_COMPRESSION', 'br', 'one of none, gzip'],
      ['OTEL_EXPORTER_OTLP_HEADERS', 'secret', 'pairs such as key=value,key2=value2'],
      ['OTEL_EXPORTER_OTLP_HEADERS', 'a=secret%E0', 'pairs such as key=value,key2=value2'],
      ['OTEL_RESOURCE_ATTRIBUTES', 'a=b;secret', 'pairs such as key=value,key2=value2'],
      ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'an integer between 100 and 600000'],
      ['OTEL_TRACES_SAMPLER', 'ratio', 'one of always_on, always_off'],
      ['OTEL_BSP_MAX_QUEUE_SIZE', '0', 'an integer between 1 and 100000'],
      ['OTEL_BSP_SCHEDULE_DELAY', '5s', 'an integer between 1 and 600000'],
      ['OTEL_SDK_DISABLED', 'yes', 'one of true, false'],
      ['OTEL_TRACES_EXPORTER', 'console', 'one of otlp, none'],
    ])('%s must not be %s, which the message does not repeat', (name, value, expected) => {
      const fault = faultOf({ OTEL_EXPORTER_OTLP_ENDPOINT, [name]: value });
      expect(fault).toContain(`Wrong settings: ${name} must be ${expected}`);
      expect(fault).not.toContain('secret');
    });

    test.each(['1.5', '-0.1', '1e-1', 'half', '.'])('OTEL_TRACES_SAMPLER_ARG must not be %s', (value) => {
      expect(
        faultOf({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: value }),
      ).toContain('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1.');
    });
  });

  test('one line names all wrong settings, each once', () => {
    const fault = faultOf({
      PORT: 'secret-1',
      DATABASE_REPLICA_URLS: 'secret-2,secret-3',
      LOG_LEVEL: 'secret-4',
      DATABASE_URL,
    });
    expect(fault).toMatch(
      /^Wrong settings: PORT must be [^;]+; DATABASE_REPLICA_URLS must be [^;]+; LOG_LEVEL must be [^;]+\. \.env\.example describes every setting\.$/,
    );
    expect(fault).not.toContain('secret');
  });
});

/** The names of settings that config.ts reads. */
function settingsInCode(): Set<string> {
  const files = ['config.ts', 'settings/database-uris.ts', 'settings/tracing-settings.ts'];
  const source = files.map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n');
  return new Set([...source.matchAll(/'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)'/g)].map((match) => match[1] ?? ''));
}

describe('.env.example', () => {
  const text = readFileSync(new URL('../.env.example', import.meta.url), 'utf8');
  const described = [...text.matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(
    ([, name = '', value = '']) => [name, value] as const,
  );

  test('has exactly the settings that are read, each once', () => {
    const names = described.map(([name]) => name);
    expect([...names].sort()).toEqual([...settingsInCode()].sort());
  });

  test('sets nothing, and shows the defaults', () => {
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([]);
    expect({ ...readConfig(Object.fromEntries(described)) }).toEqual(DEFAULTS);
  });
});

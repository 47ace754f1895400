import { readDatabaseUri, readReplicaUris } from './settings/database-uris.js';
import { type Environment, SettingsReader } from './settings/settings-reader.js';
import { readTracing, type TracingSettings } from './settings/tracing-settings.js';

/** Log levels, from the most lines to none. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The fast paths: code that replaces work of a framework for speed alone. src/platform/internals/README.md describes each. */
export const FAST_PATHS = [
  'express-prototypes',
  'handler-calls',
  'joined-writes',
  'log-lines',
  'prepared-queries',
  'shared-statements',
  'young-allocations',
] as const;

export type FastPath = (typeof FAST_PATHS)[number];

/** The start of every API key that the service makes. Secret scanners search for it, so it never changes. */
export const API_KEY_PREFIX = 'pets_';

/** Largest rate limit, in requests a minute. One process serves fewer than that. */
export const MAX_RATE_LIMIT_PER_MINUTE = 10_000_000;

/** Largest number of processes that may share a port. */
export const MAX_WEB_CONCURRENCY = 64;

/**
 * The settings of one process, read from the environment once at start and never changed. Each comment gives the
 * setting's default and range; `.env.example` describes the settings to operators. No other file reads the variables.
 * CONTRIBUTING.md lists the steps for a new setting.
 *
 * Most times range from 100 to 600 000 ms: less than 0.1 s would fail ordinary requests, and more than 10 minutes is
 * usually a wrong unit.
 */
export class Config {
  /** TCP port to listen on, 3000 by default. 0 to 65 535; with 0 the system chooses a free port. */
  port: number;
  /** Address to listen on. 0.0.0.0 by default: all IPv4 addresses, so that the service works in a container. */
  host: string;
  /**
   * Number of processes that share the port, 1 by default. 1 to 64; more than 1 needs `databaseUrl`, because the
   * embedded engine belongs to one process.
   */
  webConcurrency: number;
  /**
   * With several processes: time in ms without a report after which a process is killed and replaced. 30 000 by
   * default, longer than any garbage collection pause. 2000 to 600 000.
   */
  hangTimeoutMs: number;
  /** PostgreSQL connection URI. Undefined by default: the embedded engine. */
  databaseUrl: string | undefined;
  /** Directory of the embedded engine, `.data` by default. */
  dataDir: string;
  /**
   * Largest number of pooled connections of each process to each PostgreSQL server. 10 by default, so that eight
   * processes, with two connections more each, fit into PostgreSQL's default of 100. 1 to 1000. The embedded engine
   * always has one.
   */
  databasePoolSize: number;
  /**
   * URI of the same database that bypasses a pooler in transaction mode. Migrations, notifications of changed keys and
   * the heartbeat use it. Undefined by default: `databaseUrl` is used. Needs `databaseUrl`.
   */
  databaseDirectUrl: string | undefined;
  /** File with the password for URIs that have none, read for each new connection. None by default. */
  databasePasswordFile: string | undefined;
  /**
   * Largest age in ms of a pooled connection; each is replaced then or up to a fifth earlier. 1 800 000 by default: half
   * an hour. 1000 to 86 400 000.
   */
  databaseConnectionMaxAgeMs: number;
  /** URIs of PostgreSQL read replicas, from which lists are read. None by default; needs `databaseUrl`. */
  databaseReplicaUrls: string[];
  /**
   * `fresh`, the default: a read from a replica shows everything that was committed before the request arrived, or the
   * primary answers it. `stale`: a replica may be behind.
   */
  replicaReads: 'fresh' | 'stale';
  /**
   * True: the start applies pending migrations. False: the start fails on an outdated schema. True by default for the
   * embedded engine; false with `databaseUrl`, where one command should migrate before all instances start.
   */
  migrateOnStart: boolean;
  /**
   * True, the default: an instance stays ready while the database is unreachable, and answers 503 itself. False: it is not
   * ready then.
   */
  readyWithoutDatabase: boolean;
  /**
   * Time in ms after which PostgreSQL cancels a statement. 5000 by default: ordinary ones take a few ms. 100 to 600 000.
   */
  statementTimeoutMs: number;
  /**
   * Longest time in ms that a request waits in the queue for the database, and again for a connection. 3000 by default,
   * so that a client gets 503 before it gives up. 100 to 600 000.
   */
  acquireTimeoutMs: number;
  /** An API key that is created at start if it does not exist, 20 to 255 characters. None by default. */
  bootstrapApiKey: string | undefined;
  /**
   * URL of this service for absolute links, without a trailing slash. It ends in /v1.
   * `http://localhost:<port>/v1` by default.
   */
  publicBaseUrl: string;
  /** URL of production, for the OpenAPI document: PUBLIC_BASE_URL as it is set. Undefined by default. */
  productionBaseUrl: string | undefined;
  /** URL of staging, for the OpenAPI document; it ends in /v1, too. Undefined by default. */
  stagingBaseUrl: string | undefined;
  /** Lowest level that is logged. `info` by default: one line for each request. */
  logLevel: (typeof LOG_LEVELS)[number];
  /**
   * Requests a minute of one client, unless the client has a limit of its own. 6000 by default: 100 a second. 0 to
   * MAX_RATE_LIMIT_PER_MINUTE; 0 means no limit.
   */
  rateLimitPerMinute: number;
  /**
   * URI of the Redis in which the instances share their rate limits. Undefined by default: each process counts by
   * itself.
   */
  redisUrl: string | undefined;
  /** Days of per-key usage to keep, today included. 400 by default: a year and a month. 30 to 3650. */
  keyUsageRetentionDays: number;
  /**
   * Largest request body in bytes. 65 536 (64 KiB) by default, twenty times the largest animal. 1024 to 16 777 216
   * (16 MiB). A larger body is answered 413.
   */
  maxBodyBytes: number;
  /**
   * Longest time in ms for the header section of a request to arrive. 10 000 by default. 100 to 600 000, and at most
   * `requestTimeoutMs`. A later one is answered 408.
   */
  headersTimeoutMs: number;
  /**
   * Longest time in ms for a whole request to arrive. 30 000 by default; 100 to 600 000. A later one is answered 408.
   */
  requestTimeoutMs: number;
  /**
   * Time in ms after which an idle connection is closed. 75 000 by default: longer than the 60 s of usual load
   * balancers, so that they, not the service, close connections. 100 to 600 000.
   */
  keepAliveTimeoutMs: number;
  /**
   * Time in ms that a client may read nothing of its answer; the connection is cut after one to two times this time.
   * 30 000 by default; 100 to 600 000.
   */
  writeTimeoutMs: number;
  /**
   * Largest number of open connections of each process. 10 000 by default; 1 to 1 000 000. Each one is an open file.
   */
  maxConnections: number;
  /**
   * Largest number of requests that each process works on at a time. 1000 by default; 1 to 1 000 000. One more is
   * answered 503 at once, health checks and metrics excepted.
   */
  maxRequestsInFlight: number;
  /**
   * Largest number of open event streams (`@Sse()`) of each process. They do not count as requests in flight. 1000 by
   * default; 1 to 1 000 000. One more is answered 503.
   */
  maxEventStreams: number;
  /**
   * Time in ms that the server keeps listening after the stop signal. Readiness answers 503 during that time, so that
   * load balancers remove the instance. 0 by default: without a load balancer no delay is needed. 0 to 600 000.
   */
  shutdownDelayMs: number;
  /**
   * Time in ms from the stop signal until idle connections are closed, because clients may be sending requests on them.
   * 1000 by default; 0 to 600 000.
   */
  shutdownLingerMs: number;
  /** Time in ms that requests in flight have to finish, after `shutdownDelayMs`. 15 000 by default; 100 to 600 000. */
  shutdownTimeoutMs: number;
  /** Origins whose pages may call the API from a browser. Empty by default: CORS is off. */
  corsOrigins: string[];
  /** What a deprecated operation does after its sunset: `remove` answers 410, the default; `serve` continues. */
  afterSunset: 'remove' | 'serve';
  /** Undefined by default: without an endpoint for spans nothing is traced. */
  tracing: TracingSettings | undefined;
  /** The fast paths in use. Without them the service is slower and otherwise the same. */
  fastPaths: readonly FastPath[];
}

/**
 * Reads and validates the settings. A value that is empty or only white space counts as not set.
 *
 * @throws StartupError that names each wrong setting and what it must be, but not its value, which may be a secret
 */
export function readConfig(environment: Environment = process.env): Config {
  const settings = new SettingsReader(environment);
  const databaseUrl = readDatabaseUri(settings, 'DATABASE_URL');
  const productionBaseUrl = readBaseUrl(settings, 'PUBLIC_BASE_URL');
  const port = settings.integer('PORT', 3000, 0, 65535);
  const config: Config = {
    port,
    host: settings.text('HOST') ?? '0.0.0.0',
    webConcurrency: settings.integer('WEB_CONCURRENCY', 1, 1, MAX_WEB_CONCURRENCY),
    hangTimeoutMs: settings.integer('HANG_TIMEOUT_MS', 30_000, 2_000, 600_000),
    databaseUrl,
    dataDir: settings.text('DATA_DIR') ?? '.data',
    databaseDirectUrl: readDatabaseUri(settings, 'DATABASE_DIRECT_URL'),
    databasePasswordFile: settings.text('DATABASE_PASSWORD_FILE'),
    databaseConnectionMaxAgeMs: settings.integer('DATABASE_CONNECTION_MAX_AGE_MS', 1_800_000, 1_000, 86_400_000),
    databasePoolSize: settings.integer('DATABASE_POOL_SIZE', 10, 1, 1000),
    databaseReplicaUrls: readReplicaUris(settings),
    replicaReads: settings.choice('REPLICA_READS', 'fresh', ['fresh', 'stale']),
    migrateOnStart: settings.isTrue('MIGRATE_ON_START', databaseUrl === undefined),
    readyWithoutDatabase: settings.isTrue('READY_WITHOUT_DATABASE', true),
    statementTimeoutMs: settings.integer('STATEMENT_TIMEOUT_MS', 5_000, 100, 600_000),
    acquireTimeoutMs: settings.integer('ACQUIRE_TIMEOUT_MS', 3_000, 100, 600_000),
    bootstrapApiKey: readBootstrapApiKey(settings),
    publicBaseUrl: productionBaseUrl ?? `http://localhost:${port || 3000}/v1`,
    productionBaseUrl,
    stagingBaseUrl: readBaseUrl(settings, 'STAGING_BASE_URL'),
    logLevel: settings.choice('LOG_LEVEL', 'info', LOG_LEVELS),
    rateLimitPerMinute: settings.integer('RATE_LIMIT_PER_MINUTE', 6_000, 0, MAX_RATE_LIMIT_PER_MINUTE),
    redisUrl: readRedisUrl(settings),
    keyUsageRetentionDays: settings.integer('KEY_USAGE_RETENTION_DAYS', 400, 30, 3_650),
    maxBodyBytes: settings.integer('MAX_BODY_BYTES', 65_536, 1_024, 16_777_216),
    headersTimeoutMs: settings.integer('HEADERS_TIMEOUT_MS', 10_000, 100, 600_000),
    requestTimeoutMs: settings.integer('REQUEST_TIMEOUT_MS', 30_000, 100, 600_000),
    keepAliveTimeoutMs: settings.integer('KEEP_ALIVE_TIMEOUT_MS', 75_000, 100, 600_000),
    writeTimeoutMs: settings.integer('WRITE_TIMEOUT_MS', 30_000, 100, 600_000),
    maxConnections: settings.integer('MAX_CONNECTIONS', 10_000, 1, 1_000_000),
    maxRequestsInFlight: settings.integer('MAX_REQUESTS_IN_FLIGHT', 1_000, 1, 1_000_000),
    maxEventStreams: settings.integer('MAX_EVENT_STREAMS', 1_000, 1, 1_000_000),
    shutdownDelayMs: settings.integer('SHUTDOWN_DELAY_MS', 0, 0, 600_000),
    shutdownLingerMs: settings.integer('SHUTDOWN_LINGER_MS', 1_000, 0, 600_000),
    shutdownTimeoutMs: settings.integer('SHUTDOWN_TIMEOUT_MS', 15_000, 100, 600_000),
    corsOrigins: settings.list('CORS_ORIGINS').map((origin) => checkedOrigin(settings, origin)),
    afterSunset: settings.choice('AFTER_SUNSET', 'remove', ['remove', 'serve']),
    tracing: readTracing(settings),
    fastPaths: readFastPaths(settings),
  };
  checkCombinations(settings, config);
  settings.assertValid();
  return Object.freeze(Object.assign(new Config(), config));
}

function readBaseUrl(settings: SettingsReader, name: string): string | undefined {
  const value = settings.text(name);
  if (value === undefined) return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const plain = url && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  // `href` is ASCII, as header fields require.
  return plain && /^https?:$/.test(url.protocol) && /\/v1\/?$/.test(url.pathname)
    ? url.href.replace(/\/$/, '')
    : settings.reject(name, 'an http or https URL that ends in /v1', undefined);
}

function checkedOrigin(settings: SettingsReader, origin: string): string {
  // Browsers send origins in this form only (RFC 6454, section 6.2); any other would never match.
  const valid = /^https?:\/\/[^*]+$/.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin;
  return valid
    ? origin
    : settings.reject(
        'CORS_ORIGINS',
        'origins such as https://app.example.com, separated by commas: in lower case, without wildcard, default port, ' +
          'path or slash at the end',
        origin,
      );
}

function readFastPaths(settings: SettingsReader): readonly FastPath[] {
  const value = settings.text('FAST_PATHS') ?? 'on';
  if (value === 'on') return FAST_PATHS;
  if (value === 'off') return [];
  const names = settings.list('FAST_PATHS');
  const chosen = FAST_PATHS.filter((name) => names.includes(name));
  return chosen.length === new Set(names).size
    ? chosen
    : settings.reject('FAST_PATHS', `on, off, or some of ${FAST_PATHS.join(', ')}, separated by commas`, FAST_PATHS);
}

function readBootstrapApiKey(settings: SettingsReader): string | undefined {
  const value = settings.text('BOOTSTRAP_API_KEY');
  // b64token of RFC 6750, section 2.1.
  return value === undefined || (/^[A-Za-z0-9\-._~+/]+=*$/.test(value) && value.length >= 20 && value.length <= 255)
    ? value
    : settings.reject('BOOTSTRAP_API_KEY', '20 to 255 characters of A-Z a-z 0-9 - . _ ~ + / (and = at the end)', value);
}

function readRedisUrl(settings: SettingsReader): string | undefined {
  const value = settings.text('REDIS_URL');
  return value === undefined || (URL.canParse(value) && /^rediss?:\/\/[^/]/.test(value))
    ? value
    : settings.reject('REDIS_URL', 'a Redis URI such as redis://user:password@host:6379/0', value);
}

/** Adds the faults of settings that contradict each other. */
function checkCombinations(settings: SettingsReader, config: Config): void {
  if (config.databaseDirectUrl !== undefined && config.databaseUrl === undefined) {
    settings.fault('DATABASE_DIRECT_URL needs DATABASE_URL');
  }
  if (config.databaseReplicaUrls.length > 0 && config.databaseUrl === undefined) {
    settings.fault('DATABASE_REPLICA_URLS needs DATABASE_URL');
  }
  if (config.webConcurrency > 1 && config.databaseUrl === undefined) {
    settings.fault('WEB_CONCURRENCY must be 1 without DATABASE_URL: the embedded database belongs to one process');
  }
  if (config.headersTimeoutMs > config.requestTimeoutMs) {
    settings.fault('HEADERS_TIMEOUT_MS must not be larger than REQUEST_TIMEOUT_MS');
  }
}

import { existsSync } from 'node:fs';
import { StartupError } from './platform/errors/startup-error.js';

/** Levels of the log, from most to least. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The fast paths: code that replaces work of a framework for speed alone. src/platform/fast-paths/README.md describes each. */
export const FAST_PATHS = [
  'express-prototypes',
  'handler-calls',
  'joined-writes',
  'prepared-queries',
  'shared-statements',
] as const;

export type FastPath = (typeof FAST_PATHS)[number];

/** Largest rate limit, in requests a minute: more than one process can serve. */
export const MAX_RATE_LIMIT_PER_MINUTE = 10_000_000;

/** Most processes that may share a port. */
export const MAX_WEB_CONCURRENCY = 64;

/**
 * The settings of one process, read from the environment once and never changed. `.env.example` describes each of them
 * to operators. This file is the only reader of `process.env`.
 */
export class Config {
  /** Port to listen on; 0 lets the system choose one. */
  port: number;
  /** Address to listen on. */
  host: string;
  /** Processes that share the port; more than one needs PostgreSQL. */
  webConcurrency: number;
  /** PostgreSQL connection URI; undefined means the embedded engine. */
  databaseUrl: string | undefined;
  /** Directory of the embedded engine. */
  dataDir: string;
  /** Connections each process keeps to PostgreSQL at the most. The embedded engine always has one. */
  databasePoolSize: number;
  /** PostgreSQL read replicas, from which lists are read. */
  databaseReplicaUrls: string[];
  /** Whether a start applies pending migrations, or refuses to run on an outdated schema. */
  migrateOnStart: boolean;
  /** Time in ms after which PostgreSQL cancels a statement. */
  statementTimeoutMs: number;
  /** Time in ms that a request waits for its turn at the database, and that it waits for a connection. */
  acquireTimeoutMs: number;
  /** A key that exists from the start on. */
  bootstrapApiKey: string | undefined;
  /** Address of production, for absolute links and the document; no trailing slash. */
  publicBaseUrl: string;
  /** Address of staging, for the document; no trailing slash. */
  stagingBaseUrl: string;
  /** Lowest level that is logged. */
  logLevel: (typeof LOG_LEVELS)[number];
  /** Requests a minute that a client may send unless it has a limit of its own; 0 is any number. */
  rateLimitPerMinute: number;
  /** Redis in which the instances share their rate limits; undefined means each has its own. */
  redisUrl: string | undefined;
  /** Days, today included, that the usage of API keys is kept. */
  keyUsageRetentionDays: number;
  /** Largest request body in bytes. */
  maxBodyBytes: number;
  /** Time in ms for the header section of a request to arrive. */
  headersTimeoutMs: number;
  /** Time in ms for a whole request to arrive. */
  requestTimeoutMs: number;
  /** Time in ms that an idle connection is kept. */
  keepAliveTimeoutMs: number;
  /** Time in ms for which a client may take nothing of its answer. */
  writeTimeoutMs: number;
  /** Connections that each process keeps open at the most. */
  maxConnections: number;
  /** Requests that each process works on at a time. */
  maxRequestsInFlight: number;
  /** Time in ms that the server goes on serving when it is told to stop, while readiness says that it will not. */
  shutdownDelayMs: number;
  /** Time in ms, from being told to stop, after which idle connections are closed. */
  shutdownLingerMs: number;
  /** Time in ms that requests in flight have to finish after the delay. */
  shutdownTimeoutMs: number;
  /** Origins that browsers may call from; empty turns CORS off. */
  corsOrigins: string[];
  /** What becomes of a deprecated operation after its sunset: 410, or served on. */
  afterSunset: 'remove' | 'serve';
  /** The fast paths in use. Without them the service is slower and otherwise the same. */
  fastPaths: readonly FastPath[];
}

/** Adds the settings of a `.env` file in the working directory, if there is one, to those of the environment, which win. */
export function loadEnvironmentFile(): void {
  if (existsSync('.env')) {
    try {
      process.loadEnvFile('.env');
    } catch (error) {
      throw new StartupError(
        `.env cannot be read: ${(error as Error).message}. Make it a readable file, or remove it.`,
      );
    }
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and validates the settings. An empty value counts as not set.
 *
 * @throws StartupError naming every setting that is wrong and what it may be, and no value, for a value may be a secret.
 */
export function readConfig(environment: Environment = process.env): Config {
  const faults: string[] = [];
  const text = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const reject = <T>(name: string, expected: string, fallback: T): T => {
    faults.push(`${name} must be ${expected}`);
    return fallback;
  };

  function integer(name: string, fallback: number, minimum: number, maximum: number): number {
    const value = text(name);
    if (value === undefined) return fallback;
    const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
    return number >= minimum && number <= maximum
      ? number
      : reject(name, `an integer between ${minimum} and ${maximum}`, fallback);
  }

  function choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const value = text(name);
    if (value === undefined) return fallback;
    return choices.find((known) => known === value) ?? reject(name, `one of ${choices.join(', ')}`, fallback);
  }

  function databaseUrl(name: string, value: string): string {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    return (url?.protocol === 'postgresql:' || url?.protocol === 'postgres:') && url.hostname + url.search !== ''
      ? value
      : reject(name, 'a PostgreSQL URI such as postgresql://user:password@host:5432/petstore', value);
  }

  function baseUrl(name: string, fallback: string): string {
    const value = text(name) ?? fallback;
    const url = URL.canParse(value) ? new URL(value) : undefined;
    const plain = url && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
    // In the form of URLs, which is ASCII and may stand in header fields.
    return plain && /^https?:$/.test(url.protocol) && /\/v1\/?$/.test(url.pathname)
      ? url.href.replace(/\/$/, '')
      : reject(name, 'an http or https URL that ends in /v1', fallback);
  }

  function list(name: string): string[] {
    return (text(name) ?? '')
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  }

  function corsOrigin(origin: string): string {
    const valid = URL.canParse(origin) && /^https?:/.test(origin) && new URL(origin).origin === origin;
    return valid
      ? origin
      : reject('CORS_ORIGINS', 'origins such as https://app.example.com, separated by commas', origin);
  }

  function fastPaths(): readonly FastPath[] {
    const value = text('FAST_PATHS') ?? 'on';
    if (value === 'on') return FAST_PATHS;
    if (value === 'off') return [];
    const names = list('FAST_PATHS');
    const chosen = FAST_PATHS.filter((name) => names.includes(name));
    return chosen.length === new Set(names).size
      ? chosen
      : reject('FAST_PATHS', `on, off, or some of ${FAST_PATHS.join(', ')}, separated by commas`, FAST_PATHS);
  }

  function bootstrapApiKey(): string | undefined {
    const value = text('BOOTSTRAP_API_KEY');
    // RFC 6750 section 2.1: b64token
    return value === undefined || (/^[A-Za-z0-9\-._~+/]+=*$/.test(value) && value.length >= 20 && value.length <= 255)
      ? value
      : reject('BOOTSTRAP_API_KEY', '20 to 255 characters of A-Z a-z 0-9 - . _ ~ + / (and = at the end)', value);
  }

  function redisUrl(): string | undefined {
    const value = text('REDIS_URL');
    return value === undefined || (URL.canParse(value) && /^rediss?:\/\/[^/]/.test(value))
      ? value
      : reject('REDIS_URL', 'a Redis URI such as redis://user:password@host:6379/0', value);
  }

  const url = text('DATABASE_URL');
  const port = integer('PORT', 3000, 0, 65535);
  const config: Config = {
    port,
    host: text('HOST') ?? '0.0.0.0',
    webConcurrency: integer('WEB_CONCURRENCY', 1, 1, MAX_WEB_CONCURRENCY),
    databaseUrl: url === undefined ? undefined : databaseUrl('DATABASE_URL', url),
    dataDir: text('DATA_DIR') ?? '.data',
    databasePoolSize: integer('DATABASE_POOL_SIZE', 10, 1, 1000),
    databaseReplicaUrls: list('DATABASE_REPLICA_URLS').map((item) => databaseUrl('DATABASE_REPLICA_URLS', item)),
    migrateOnStart: choice('MIGRATE_ON_START', url === undefined ? 'true' : 'false', ['true', 'false']) === 'true',
    statementTimeoutMs: integer('STATEMENT_TIMEOUT_MS', 5_000, 100, 600_000),
    acquireTimeoutMs: integer('ACQUIRE_TIMEOUT_MS', 3_000, 100, 600_000),
    bootstrapApiKey: bootstrapApiKey(),
    publicBaseUrl: baseUrl('PUBLIC_BASE_URL', `http://localhost:${port || 3000}/v1`),
    stagingBaseUrl: baseUrl('STAGING_BASE_URL', 'http://localhost:3001/v1'),
    logLevel: choice('LOG_LEVEL', 'info', LOG_LEVELS),
    rateLimitPerMinute: integer('RATE_LIMIT_PER_MINUTE', 6_000, 0, MAX_RATE_LIMIT_PER_MINUTE),
    redisUrl: redisUrl(),
    keyUsageRetentionDays: integer('KEY_USAGE_RETENTION_DAYS', 400, 30, 3_650),
    maxBodyBytes: integer('MAX_BODY_BYTES', 65_536, 1_024, 16_777_216),
    headersTimeoutMs: integer('HEADERS_TIMEOUT_MS', 10_000, 100, 600_000),
    requestTimeoutMs: integer('REQUEST_TIMEOUT_MS', 30_000, 100, 600_000),
    keepAliveTimeoutMs: integer('KEEP_ALIVE_TIMEOUT_MS', 75_000, 100, 600_000),
    writeTimeoutMs: integer('WRITE_TIMEOUT_MS', 30_000, 100, 600_000),
    maxConnections: integer('MAX_CONNECTIONS', 10_000, 1, 1_000_000),
    maxRequestsInFlight: integer('MAX_REQUESTS_IN_FLIGHT', 1_000, 1, 1_000_000),
    shutdownDelayMs: integer('SHUTDOWN_DELAY_MS', 0, 0, 600_000),
    shutdownLingerMs: integer('SHUTDOWN_LINGER_MS', 1_000, 0, 600_000),
    shutdownTimeoutMs: integer('SHUTDOWN_TIMEOUT_MS', 15_000, 100, 600_000),
    corsOrigins: list('CORS_ORIGINS').map(corsOrigin),
    afterSunset: choice('AFTER_SUNSET', 'remove', ['remove', 'serve']),
    fastPaths: fastPaths(),
  };
  if (config.databaseReplicaUrls.length > 0 && config.databaseUrl === undefined) {
    faults.push('DATABASE_REPLICA_URLS needs DATABASE_URL');
  }
  if (config.webConcurrency > 1 && config.databaseUrl === undefined) {
    faults.push('WEB_CONCURRENCY must be 1 without DATABASE_URL: the embedded database belongs to one process');
  }
  if (config.headersTimeoutMs > config.requestTimeoutMs) {
    faults.push('HEADERS_TIMEOUT_MS must not be larger than REQUEST_TIMEOUT_MS');
  }
  if (faults.length > 0) {
    throw new StartupError(`Wrong settings: ${[...new Set(faults)].join('; ')}. .env.example describes every setting.`);
  }
  return Object.freeze(Object.assign(new Config(), config));
}

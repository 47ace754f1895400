import { choice, integer, optional, parseList, type Setting } from './setting.js';

/** Log levels, from the most lines to none. `info` is the default. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Largest rate limit, in requests a minute. One process serves fewer than that. */
const MAX_RATE_LIMIT_PER_MINUTE = 10_000_000;

const LONGEST_TIME_MS = 600_000;
/** Less than 0.1 s would fail ordinary requests, and more than 10 minutes is usually a wrong unit. */
const TIME: readonly [number, number] = [100, LONGEST_TIME_MS];
const POSTGRESQL_URI = 'a PostgreSQL URI such as postgresql://user:password@host:5432/database';

function databaseUri(name: string, about: string): Setting<string | undefined> {
  return optional(name, POSTGRESQL_URI, about, parseDatabaseUri);
}

/** The URI of one PostgreSQL server in a text. A parameter may name the host, such as the directory of a socket. */
function parseDatabaseUri(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol)) return undefined;
  const host = url.hostname + (url.searchParams.get('host') ?? '');
  return (host !== '' || url.search !== '') && !host.includes(',') ? text : undefined;
}

function baseUrl(name: string, about: string): Setting<string | undefined> {
  return optional(name, 'an http or https URL that ends in /v1', about, parseBaseUrl);
}

/** The base URL in a text, without a trailing slash; undefined if it is no http or https URL that ends in /v1. */
function parseBaseUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  // `href` is ASCII, as header fields require.
  return isPlain && /^https?:$/.test(url.protocol) && /\/v1\/?$/.test(url.pathname)
    ? url.href.replace(/\/$/, '')
    : undefined;
}

/** b64token of RFC 6750, section 2.1. */
function isKey(text: string): boolean {
  return /^[A-Za-z0-9\-._~+/]+=*$/.test(text) && text.length >= 20 && text.length <= 255;
}

/** Whether a text is an origin as browsers send it (RFC 6454, section 6.2); any other would never match. */
function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

const SERVER = {
  port: integer('PORT', 3_000, [0, 65_535], 'TCP port to listen on; 0 lets the system choose.'),
  host: optional(
    'HOST',
    'an address of this machine',
    'Address to listen on. The default is all IPv4 addresses, so that the service works in a container.',
    (text) => text,
    '0.0.0.0',
    '0.0.0.0',
  ),
  webConcurrency: integer(
    'WEB_CONCURRENCY',
    1,
    [1, 64],
    'Processes that share the port; one per core is a good number. More than one needs DATABASE_URL. Limits "per process" ' +
      'below apply to each of them.',
  ),
};

const DATABASE = {
  databaseUrl: databaseUri(
    'DATABASE_URL',
    'PostgreSQL 15 to 18. Not set: an embedded PostgreSQL in this process, for one machine and one process.',
  ),
  databaseDirectUrl: databaseUri(
    'DATABASE_DIRECT_URL',
    'Set it if DATABASE_URL leads through a pooler in transaction mode: a URI of the same database that bypasses the pooler. ' +
      'Migrations and notifications of changed API keys use it.',
  ),
  dataDir: optional(
    'DATA_DIR',
    'a path of at most 70 bytes',
    'Directory of the embedded PostgreSQL.',
    (text) => text,
    '.data',
    '.data',
  ),
  databasePoolSize: integer(
    'DATABASE_POOL_SIZE',
    10,
    [1, 1_000],
    'Largest number of pooled connections per process and server. Each process opens at most two more, and one more with replicas.',
  ),
  databaseReplicaUrls: optional(
    'DATABASE_REPLICA_URLS',
    POSTGRESQL_URI,
    'Read replicas (streaming standbys), separated by commas. Lists are read from them, and show everything that was ' +
      'committed before the request; everything else uses DATABASE_URL.',
    parseList((uri) => parseDatabaseUri(uri) !== undefined),
    [] as string[],
  ),
  migrateOnStart: choice(
    'MIGRATE_ON_START',
    ['true', 'false'],
    undefined,
    'true: the start applies pending migrations; the default for the embedded PostgreSQL. false: the start fails on an ' +
      'outdated schema; the default with DATABASE_URL. Then run the command `migrate` once, before the instances start.',
  ),
  statementTimeoutMs: integer(
    'STATEMENT_TIMEOUT_MS',
    5_000,
    TIME,
    'PostgreSQL cancels a statement after this time in ms, and the request gets 500 `took_too_long`.',
  ),
};

const API = {
  bootstrapApiKey: optional(
    'BOOTSTRAP_API_KEY',
    '20 to 255 characters of A-Z a-z 0-9 - . _ ~ + / (and = at the end)',
    'An API key that the start creates if it does not exist.',
    (text) => (isKey(text) ? text : undefined),
  ),
  productionBaseUrl: baseUrl(
    'PUBLIC_BASE_URL',
    'URL of this service as its clients reach it. Links in responses use it, and the OpenAPI document lists it. Not set: links ' +
      'begin with http://localhost and PORT, and the document names the server that has sent it.',
  ),
  stagingBaseUrl: baseUrl('STAGING_BASE_URL', 'URL of staging, for the OpenAPI document.'),
  corsOrigins: optional(
    'CORS_ORIGINS',
    'origins such as https://app.example.com, separated by commas: in lower case, without wildcard, default port, path or ' +
      'slash at the end',
    'Origins whose pages may call the API from a browser (CORS), separated by commas. Not set: none.',
    parseList(isOrigin),
    [] as string[],
  ),
  afterSunset: choice(
    'AFTER_SUNSET',
    ['remove', 'serve'],
    'remove',
    'What a deprecated operation does after its sunset: remove (410) or serve (continue).',
  ),
};

const REQUEST_LIMITS = {
  rateLimitPerMinute: integer(
    'RATE_LIMIT_PER_MINUTE',
    6_000,
    [0, MAX_RATE_LIMIT_PER_MINUTE],
    'Requests a minute of one client, with all of its keys together; 0 means no limit. A client ' +
      'may send all of them at once; it gets one sixtieth back each second.',
  ),
  redisUrl: optional(
    'REDIS_URL',
    'a Redis URI such as redis://user:password@host:6379/0',
    'Redis (5 or later) in which instances with the same host and database in DATABASE_URL share the rate limits. Not set, or while Redis does not respond: each process ' +
      'counts by itself.',
    (text) => (URL.canParse(text) && /^rediss?:\/\/[^/]/.test(text) ? text : undefined),
  ),
  maxBodyBytes: integer(
    'MAX_BODY_BYTES',
    65_536,
    [1_024, 16_777_216],
    'Largest request body in bytes. A larger body gets 413.',
  ),
  requestTimeoutMs: integer(
    'REQUEST_TIMEOUT_MS',
    30_000,
    TIME,
    'Longest time in ms for a whole request to arrive, 10 s of it for the header section; then it gets 408.',
  ),
  keepAliveTimeoutMs: integer(
    'KEEP_ALIVE_TIMEOUT_MS',
    75_000,
    TIME,
    'An idle connection is closed after this time in ms. Longer than the 60 s of usual load balancers, so that they close it.',
  ),
  maxRequestsInFlight: integer(
    'MAX_REQUESTS_IN_FLIGHT',
    1_000,
    [1, 1_000_000],
    'Largest number of requests that a process works on at a time. Further requests get 503 at once, health checks and ' +
      'metrics excepted.',
  ),
};

const STOP = {
  shutdownDelayMs: integer(
    'SHUTDOWN_DELAY_MS',
    0,
    [0, LONGEST_TIME_MS],
    'After SIGTERM the service accepts connections for this time in ms, while /health/ready returns 503, so that a load ' +
      'balancer removes it.',
  ),
  shutdownTimeoutMs: integer(
    'SHUTDOWN_TIMEOUT_MS',
    15_000,
    TIME,
    'Requests in flight have this time in ms to finish, after the delay; then they are cut.',
  ),
};

const OBSERVATION = {
  logLevel: choice('LOG_LEVEL', LOG_LEVELS, 'info', 'Lowest level to log.'),
  requestInLog: choice(
    'REQUEST_IN_LOG',
    ['true', 'false'],
    undefined,
    'true: lines that modules log while they serve a request have its id and operation, by AsyncLocalStorage; the default ' +
      'on Node 24 and later, where it costs little. false: only lines to which the code passes `request.context`; the ' +
      'default on Node 20 and 22, where it slows down every promise of the process.',
  ),
  otlpEndpoint: optional(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'an http or https URL such as http://collector.example:4318',
    "Collector of traces. If it is set, the service starts OpenTelemetry's SDK, which reads its other standard variables " +
      'itself. Not set: nothing of it is loaded.',
    (text) => (/^https?:\/\//.test(text) && URL.canParse(text) ? text : undefined),
  ),
  fastPaths: choice(
    'FAST_PATHS',
    ['on', 'off'],
    'on',
    'Code that replaces work of Node.js, Nest, Express or pg for speed alone. Switch it off when the service misbehaves ' +
      'after an upgrade.',
  ),
};

/** All settings, by the titles of their groups, in the order of `.env.example`. */
export const SETTING_GROUPS = {
  Server: SERVER,
  Database: DATABASE,
  API,
  Limits: REQUEST_LIMITS,
  Shutdown: STOP,
  'Log, traces and fast paths': OBSERVATION,
};

/** All settings, by the member of `Config` that has the value. */
export const SETTINGS = { ...SERVER, ...DATABASE, ...API, ...REQUEST_LIMITS, ...STOP, ...OBSERVATION };

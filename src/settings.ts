import cluster from 'node:cluster';
import { API_KEY_SETTINGS } from '#api-keys';
import { EMBEDDED_SETTINGS, MAX_ENGINE_FILES } from '#embedded-postgres';
import { connectionsBeside, DRAIN_SETTINGS, REQUEST_LOG_SETTINGS, SERVER_SETTINGS } from '#http';
import { BODY_SETTINGS } from '#input';
import { LOG_SETTINGS } from '#observability';
import { DOCUMENT_SETTINGS } from '#openapi';
import { DEPRECATION_SETTINGS } from '#operations';
import { DATABASE_SETTINGS, POOL_SETTINGS, STATEMENT_SETTINGS } from '#postgres';
import { PROCESS_SETTINGS } from '#processes';
import { RATE_LIMIT_SETTINGS } from '#rate-limit';
import { REPLICA_SETTINGS } from '#replicas';
import type { Environment, SettingsOf } from '#settings';
import { Config, flag, integer, loadEnvironmentFile as loadFile, optional, parseList, product } from '#settings';
import { readSettings, text } from '#settings';
import { TRACING_SETTINGS } from '#tracing';

/** All settings, in the order of `.env.example`, by the member of `ServiceConfig` that has the value. */
export const SETTINGS = {
  port: integer('PORT', 3_000, [0, 65_535], 'TCP port to listen on; 0 lets the system choose.'),
  host: text(
    'HOST',
    '0.0.0.0',
    'an address of this machine',
    'Address to listen on. The default is all IPv4 addresses, so that the service works in a container.',
  ),
  ...PROCESS_SETTINGS,
  ...DATABASE_SETTINGS,
  ...EMBEDDED_SETTINGS,
  ...POOL_SETTINGS,
  ...REPLICA_SETTINGS,
  ...STATEMENT_SETTINGS,
  ...API_KEY_SETTINGS,
  ...DOCUMENT_SETTINGS,
  corsOrigins: optional(
    'CORS_ORIGINS',
    'origins such as https://app.example.com, separated by commas: in lower case and ASCII (xn--…), without wildcard, default port, path or ' +
      'slash at the end',
    'Origins whose pages may call the API from a browser (CORS), separated by commas. Not set: none.',
    // As browsers send it (RFC 6454, section 6.2); any other would never match.
    parseList((text) =>
      /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text ? text : undefined,
    ),
    [] as string[],
  ),
  ...DEPRECATION_SETTINGS,
  ...RATE_LIMIT_SETTINGS,
  ...BODY_SETTINGS,
  ...SERVER_SETTINGS,
  ...DRAIN_SETTINGS,
  ...LOG_SETTINGS,
  ...REQUEST_LOG_SETTINGS,
  ...TRACING_SETTINGS,
  fastPaths: flag(
    'FAST_PATHS',
    ['on', 'off'],
    true,
    'Code that replaces work of Node.js, Nest, Express or pg for speed alone. Switch it off when the service misbehaves ' +
      'after an upgrade.',
    'on',
  ),
};

/** The settings of one process. Libraries inject their own by `Config`. */
export type ServiceConfig = Config & SettingsOf<typeof SETTINGS>;

/**
 * Loads `.env` of the working directory, if it exists. Variables that are set already keep their values. Prints one warning on
 * standard error about names that are unknown or set twice.
 *
 * @example loadEnvironmentFile(); const config = readConfig();
 * @throws StartupError when the file cannot be read, is not UTF-8, or has a line that is no assignment
 */
export function loadEnvironmentFile(): void {
  const names = Object.values(SETTINGS).flatMap(({ name }) => name || []);
  const warning = loadFile(names);
  // The other processes of WEB_CONCURRENCY have the environment of the first.
  if (warning !== undefined && cluster.isPrimary) process.stderr.write(`${product().name}: ${warning}\n`);
}

/**
 * Reads and validates the settings of an environment, by default of this process.
 *
 * @example const config = readConfig({ ...process.env, LOG_LEVEL: 'warn' });
 * @throws StartupError that names each wrong setting and what it must be
 */
export function readConfig(environment?: Environment): ServiceConfig {
  const settings = readSettings(SETTINGS, environment);
  const { databasePoolSize, databaseReplicaUrls, databaseUrl, maxConnections, port, productionBaseUrl } = settings;
  const ofDatabase = databaseUrl === undefined ? MAX_ENGINE_FILES : databasePoolSize * (1 + databaseReplicaUrls.length);
  const others = {
    maxConnections: connectionsBeside(ofDatabase, maxConnections),
    publicBaseUrl: productionBaseUrl ?? `http://localhost:${port || 3000}/v1`,
  };
  return Object.freeze(Object.assign(new Config(), settings, others));
}

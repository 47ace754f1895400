import { existsSync } from 'node:fs';
import { StartupError } from '#errors';
import { connectionsWithin, LIMITS, OPEN_FILES_LIMIT } from './limits.js';
import { type Environment, type Setting, WrongValue } from './setting.js';
import { SETTINGS } from './settings.js';

/** The values of the settings, as they are read. */
type Values = { [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]['read']> };

/** Members that follow from settings, or that are not set in the environment as they are used. */
interface DerivedValues {
  /** Whether the start applies pending migrations. */
  readonly migrateOnStart: boolean;
  /** Base URL of links in responses, without a trailing slash. */
  readonly publicBaseUrl: string;
  /** Whether lines that modules log name the request that is being served. */
  readonly requestInLog: boolean;
  /** Whether the fast paths are used. Without them the service is slower and otherwise the same. */
  readonly fastPaths: boolean;
}

/**
 * The settings of one process, read from the environment once at start and never changed, and the limits that are none.
 * `libs/settings/src/settings.ts` declares each setting with its unit, default and range. No other file reads the variables.
 */
/* eslint-disable @typescript-eslint/no-unsafe-declaration-merging -- the members follow from the declarations */
export class Config {}
export interface Config extends Readonly<Omit<Values, keyof DerivedValues>>, DerivedValues, Readonly<typeof LIMITS> {}
/* eslint-enable @typescript-eslint/no-unsafe-declaration-merging */

/**
 * Loads `.env` of the working directory, if it exists. Variables that are set already keep their values.
 *
 * @example loadEnvironmentFile(); const config = readConfig();
 * @throws StartupError when the file cannot be read
 */
export function loadEnvironmentFile(): void {
  if (!existsSync('.env')) return;
  try {
    process.loadEnvFile('.env');
  } catch (error) {
    throw new StartupError(`.env cannot be read: ${(error as Error).message}. Make it a readable file, or remove it.`);
  }
}

/**
 * Reads and validates the settings. A value that is empty or only white space counts as not set.
 *
 * @example const config = readConfig({ ...process.env, LOG_LEVEL: 'warn' });
 * @throws StartupError that names each wrong setting and what it must be, but not its value, which may be a secret
 */
export function readConfig(environment: Environment = process.env): Config {
  const faults: string[] = [];
  const read = ([member, setting]: [string, Setting<unknown>]): [string, unknown] => {
    try {
      return [member, setting.read(environment[setting.name]?.trim() || undefined)];
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      faults.push(`${setting.name} must be ${error.message}`);
      return [member, undefined];
    }
  };
  const values = Object.fromEntries(Object.entries(SETTINGS).map(read)) as Values;
  faults.push(...contradictions(values));
  if (faults.length > 0) {
    throw new StartupError(`Wrong settings: ${faults.join('; ')}. .env.example describes every setting.`);
  }
  const { databaseUrl, migrateOnStart, databasePoolSize, databaseReplicaUrls } = values;
  const config: Omit<Config, never> = {
    ...LIMITS,
    ...values,
    migrateOnStart: migrateOnStart === undefined ? databaseUrl === undefined : migrateOnStart === 'true',
    publicBaseUrl: values.productionBaseUrl ?? `http://localhost:${values.port || 3000}/v1`,
    requestInLog:
      values.requestInLog === undefined ? parseInt(process.versions.node) >= 24 : values.requestInLog === 'true',
    fastPaths: values.fastPaths === 'on',
    headersTimeoutMs: Math.min(LIMITS.headersTimeoutMs, values.requestTimeoutMs),
    maxConnections: connectionsWithin(OPEN_FILES_LIMIT, databasePoolSize * (1 + databaseReplicaUrls.length)),
  };
  return Object.freeze(Object.assign(Object.create(Config.prototype) as Config, config));
}

/** The faults of settings that contradict each other. */
function contradictions({ databaseUrl, databaseDirectUrl, databaseReplicaUrls, webConcurrency }: Values): string[] {
  if (databaseUrl !== undefined) return [];
  return [
    ...(databaseDirectUrl === undefined ? [] : ['DATABASE_DIRECT_URL needs DATABASE_URL']),
    ...((databaseReplicaUrls ?? []).length === 0 ? [] : ['DATABASE_REPLICA_URLS needs DATABASE_URL']),
    ...(webConcurrency > 1
      ? ['WEB_CONCURRENCY must be 1 without DATABASE_URL: the embedded database belongs to one process']
      : []),
  ];
}

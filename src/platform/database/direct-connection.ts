import type { Config } from '../../config.js';

/** The settings that hold a URI of the primary. */
export type PrimarySetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL';

/** The settings for statements that need a session of their own: `databaseUrl` is DATABASE_DIRECT_URL if that is set. */
export function directly(config: Config): Config {
  const { databaseDirectUrl } = config;
  if (databaseDirectUrl === undefined) return config;
  return { ...config, databaseUrl: databaseDirectUrl, databaseDirectUrl: undefined };
}

/** The setting that `directly` takes its URI from. */
export function directSetting({ databaseDirectUrl }: Config): PrimarySetting {
  return databaseDirectUrl === undefined ? 'DATABASE_URL' : 'DATABASE_DIRECT_URL';
}

import type { Environment } from './setting.js';

/** A setting of an earlier release that has no effect any more. */
interface GoneSetting {
  readonly name: string;
  /** Whether the value asked for something that the service does not do any more. */
  readonly matters: (value: string) => boolean;
  /** For operators: what to do instead. */
  readonly instead: string;
}

const GONE_SETTINGS: readonly GoneSetting[] = [
  {
    name: 'WEB_CONCURRENCY',
    matters: (value) => Number(value) > 1,
    instead: 'Start an instance for each core behind a proxy, and delete the setting.',
  },
  {
    name: 'DATABASE_REPLICA_URLS',
    matters: () => true,
    instead: 'DATABASE_URL serves all reads: delete the setting.',
  },
  {
    name: 'FAST_PATHS',
    matters: () => true,
    instead: 'The service has one way for each thing: delete the setting.',
  },
];

export const GONE_NAMES: readonly string[] = GONE_SETTINGS.map(({ name }) => name);

/** A warning for each gone setting whose value in an environment matters. It does not have the value, which may be a secret. */
export function goneSettings(environment: Environment = process.env): string[] {
  return GONE_SETTINGS.filter(({ name, matters }) => {
    const value = environment[name]?.trim();
    return value !== undefined && value !== '' && matters(value);
  }).map(({ name, instead }) => `${name} has no effect any more. ${instead}`);
}

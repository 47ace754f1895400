import { StartupError } from '#runtime';
import {
  Config,
  type Environment,
  loadEnvironmentFile as loadFile,
  optional,
  readSettings,
  type Settings,
} from '#settings';
import type { CoreConfig } from './platform-settings.js';
import { checkDefinition, type ConfigOf, type ServiceDefinition } from './definition.js';

/**
 * All settings of a service, in the order of `.env.example`, by the members of its configuration; those of features by name.
 *
 * @throws StartupError when the definition is wrong
 */
export async function settingsOf(definition: ServiceDefinition): Promise<Settings> {
  checkDefinition(definition);
  const { CORE_SETTINGS } = await import('./platform-settings.js');
  const all = Object.entries<Settings[string]>(CORE_SETTINGS);
  for (const { settings } of definition.parts) all.push(...Object.entries((await settings?.()) ?? {}));
  for (const [name, about] of Object.entries(definition.settings ?? {})) {
    const isTaken = all.some(([member, other]) => member === name || other.name === name);
    if (isTaken || !/^[A-Z][A-Z0-9_]*$/.test(name)) {
      const must = 'must be capital letters, digits and _, and no setting of the platform';
      throw new StartupError(`The definition of the service is wrong: settings: '${name}' ${must}.`);
    }
    all.push([name, optional(name, 'what its feature takes', about, (text) => text)]);
  }
  return Object.fromEntries(all);
}

/**
 * Loads `.env` of the working directory, if it exists. Variables that are set already keep their values. Prints one warning on
 * standard error about names that nobody knows.
 *
 * @example await loadEnvironmentFile(ORDERS); const config = await readConfig(ORDERS);
 * @throws StartupError when the file cannot be read, or has a line that is no assignment
 */
export async function loadEnvironmentFile(definition: ServiceDefinition): Promise<void> {
  const names = Object.values(await settingsOf(definition)).flatMap(({ name }) => name || []);
  const warning = loadFile(names);
  if (warning !== undefined) process.stderr.write(`${definition.product.name}: ${warning}\n`);
}

/**
 * Loads the settings of a service, and returns the function that reads and validates them in an environment, by default of
 * this process. It throws a StartupError that names each wrong setting and what it must be.
 *
 * @example const read = await configReader(ORDERS); const config = read({ DATA_DIR: './test-data' });
 */
export async function configReader<D extends ServiceDefinition>(
  definition: D,
): Promise<(environment?: Environment) => ConfigOf<D>> {
  const settings = await settingsOf(definition);
  return (environment) => {
    const values = readSettings(settings, environment) as CoreConfig & Record<string, never>;
    const { port, productionBaseUrl } = values;
    return Object.freeze(
      Object.assign(new Config(), values, {
        product: definition.product,
        publicBaseUrl: productionBaseUrl ?? `http://localhost:${port || 3000}/v1`,
      }),
    ) as unknown as ConfigOf<D>;
  };
}

/**
 * Reads and validates the settings of an environment, by default of this process.
 *
 * @example const config = await readConfig(ORDERS, { ...process.env, LOG_LEVEL: 'warn' });
 * @throws StartupError that names each wrong setting and what it must be
 */
export async function readConfig<D extends ServiceDefinition>(
  definition: D,
  environment?: Environment,
): Promise<ConfigOf<D>> {
  return (await configReader(definition))(environment);
}

/* What a service is. Nothing here loads a framework before it is needed: the help of the commands imports this door. */

export type { CoreConfig } from './src/platform-settings.js';
export { checkDefinition, defineService, migrationsOf } from './src/definition.js';
export type { CommandContext, Commands, ConfigOf, LoadedPart, Part, ServiceDefinition } from './src/definition.js';
export type { OpenedDatabase } from './src/definition.js';
export { PlatformModule, SERVICE, servedBy } from './src/platform.module.js';
export { configReader, loadEnvironmentFile, readConfig, settingsOf } from './src/read-settings.js';

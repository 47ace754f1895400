/*
 * Definition, start and commands of a service. Nothing here loads a framework before it is needed: the help of the commands
 * imports this door.
 */

export type { CommandContext, Commands, ConfigOf, LoadedPart, Part, ServiceDefinition } from './src/definition.js';
export { defineService } from './src/definition.js';
export { PlatformModule } from './src/platform.module.js';
export type { CoreConfig } from './src/core-settings.js';
export { configReader, loadEnvironmentFile, readConfig } from './src/settings.js';
export { createApplication, startService } from './src/start.js';
export type { ServiceOptions } from './src/start-service.js';

// Commands, and what commands of features and parts need.
export { runCommands } from './src/run-commands.js';
export { runInService } from './src/commands/service-client.js';
export { integerArgument, NEW_DATABASE, resultText, showProgress, table, timeCell } from './src/commands/terminal.js';

/*
 * Definition, start and commands of a service. Nothing here loads a framework before it is needed: the help of the commands
 * imports this door.
 */

export { defineService, PlatformModule } from '#definition';
export type { CommandContext, Commands, ConfigOf, CoreConfig, LoadedPart, Part, ServiceDefinition } from '#definition';
export { configReader, loadEnvironmentFile, readConfig } from '#definition';
export { createApplication, startService } from './src/start.js';
export type { ServiceOptions } from './src/start-service.js';

// Commands, and what commands of features and parts need.
export { runCommands } from './src/run-commands.js';
export { integerArgument, NEW_DATABASE, resultText, showProgress, table, timeCell } from '#commands';

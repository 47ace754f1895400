/*
 * `petstore-service`: definition, start and commands of a service, and the Pet Store's own. Features import
 * `petstore-service/platform`, and their tests import `petstore-service/testing`.
 */

export {
  type CommandContext,
  type Commands,
  type ConfigOf,
  createApplication,
  defineService,
  loadEnvironmentFile,
  PlatformModule,
  readConfig,
  runCommands,
  type ServiceDefinition,
  type ServiceOptions,
  startService,
} from '#service';

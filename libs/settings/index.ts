export {
  Application,
  type DocumentedPart,
  BASE_PATH,
  type MigrationSource,
  rootUrlOf,
  type TypeOrmOptions,
} from './src/application.js';
export { commandHere, Config, isProduction, type Product, readSettings } from './src/config.js';
export { environmentExample } from './src/environment-example.js';
export { loadEnvironmentFile } from './src/environment-file.js';
export { nearestName } from './src/nearest-name.js';
export {
  choice,
  flag,
  integer,
  limit,
  milliseconds,
  optional,
  parseList,
  withEscapes,
  WrongValue,
} from './src/setting.js';
export type { Environment, Setting, Settings, SettingsOf } from './src/setting.js';

export { Application, BASE_PATH, type MigrationSource, type TypeOrmOptions, URI_VERSIONS } from './src/application.js';
export { Config, loadEnvironmentFile, readSettings } from './src/config.js';
export { choice, flag, integer, limit, milliseconds, optional, parseList, text } from './src/setting.js';
export type { Environment, Setting, SettingsOf } from './src/setting.js';
export { nameProduct, product, type Product } from './src/product.js';

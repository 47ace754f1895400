export { Application, BASE_PATH, type MigrationSource, type TypeOrmOptions, URI_VERSIONS } from './src/application.js';
export { Config, loadEnvironmentFile, readConfig } from './src/config.js';
export { SettingsModule } from './src/settings.module.js';
export { nameProduct, product, type Product } from './src/product.js';

export { DATABASE_SETTINGS, POOL_SETTINGS, STATEMENT_SETTINGS } from './src/connection-settings.js';
export type { PostgresConfig } from './src/connection-settings.js';
export {
  databaseFault,
  isCancelled,
  isCancelledWait,
  isOutcomeUnknown,
  unavailable,
} from './src/connections/connection-errors.js';
export { Batches, type BatchLimits } from './src/batches.js';
export { DatabaseModule, MIGRATIONS, openDatabase } from './src/data-source.js';
export { Database, type Transaction } from './src/database.js';
export { type Findings, findingsOf } from './src/schema/findings.js';
export { HISTORY_MIGRATIONS } from './src/migrations.js';
export { migrate, revertLastMigration } from './src/schema/migrate.js';
export { foreignSchema, type Migration, type MigrationStatus } from './src/schema/migration-history.js';
export { migrationStatus, schemaFault } from './src/schema/migration-history.js';
export { copyRows } from './src/pg-connection.internals.js';
export { withSchemaLock } from './src/schema/schema-lock.js';
export { ServiceDataSource } from './src/service-data-source.js';
export { epochOf, EXACT, EXACT_COMMENT, type Execute, type Statement, timeOf } from './src/statements.js';

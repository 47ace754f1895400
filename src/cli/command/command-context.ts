import type { DataSource } from 'typeorm';
import type { ApiKeysService } from '../../platform/api-keys/api-keys.service.js';
import type { KeyUsageRepository } from '../../platform/key-usage/key-usage.repository.js';
import type { OpenApiDocument } from '../../platform/openapi/openapi-document.js';
import type { Terminal } from './terminal.js';

/** What a command works with. */
export interface CommandContext {
  readonly terminal: Terminal;
  /** Largest number of animals that one statement of `seed` adds. */
  readonly seedBatch: number;
  /** Exit code of a command that was carried out; 0 unless the command sets it. */
  exitCode: number;
  /**
   * Runs `work` on the API keys and their usage.
   *
   * @throws StartupError when the settings are wrong or the database cannot be opened
   * @throws CommandError when the keys cannot do what the operator asked for
   */
  withKeys<Result>(work: (apiKeys: ApiKeysService, keyUsage: KeyUsageRepository) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` on the database, with any schema.
   *
   * @throws StartupError when the settings are wrong or the database cannot be opened
   */
  withDatabase<Result>(work: (dataSource: DataSource) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` on the database with the schema of this version.
   *
   * @throws StartupError when the settings are wrong, the database cannot be opened or has another schema
   */
  withCurrentDatabase<Result>(work: (dataSource: DataSource) => Promise<Result>): Promise<Result>;
  /** The document of the application. It needs no database. */
  document(): Promise<OpenApiDocument>;
}

import type { DataSource } from 'typeorm';
import type { Application } from '../../platform/application.js';
import type { ApiKeysService } from '../../platform/api-keys/api-keys.service.js';
import type { KeyUsageRepository } from '../../platform/key-usage/key-usage.repository.js';
import type { OpenApiDocument } from '../../platform/openapi/openapi-document.js';
import type { Terminal } from './terminal.js';
import type { OutputFile } from '../transfer/output-file.js';

/** The environment of a command: its own process, or the service that runs the command for it. */
export interface CommandContext {
  readonly terminal: Terminal;
  /** Texts and defaults of the application. */
  readonly application: Application;
  /** Largest number of animals that one statement of `seed` adds. */
  readonly seedBatch: number;
  /** Options of `export`: rows per statement, and whether the connection also serves requests. */
  readonly exportOptions: { readonly maxRows: number; readonly sharesConnection: boolean };
  /** Exit code of a completed command; 0 unless the command sets it. */
  exitCode: number;
  /**
   * Runs `work` on the API keys and their usage.
   *
   * @throws StartupError when the settings are wrong or the database cannot be opened
   * @throws CommandError when the keys cannot do what the operator asked for
   */
  withKeys<Result>(work: (apiKeys: ApiKeysService, keyUsage: KeyUsageRepository) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` on the database, whatever its schema version.
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
  /**
   * Creates a file in the operator's working directory, with the rights of the operator's user.
   *
   * @param path a path that ends with .gz makes it gzipped; `-` is standard output
   * @throws CommandError when the file exists and is not to be overwritten, or cannot be made
   */
  createFile(path: string, overwrite: boolean): Promise<OutputFile>;
  /** The document of the application. It needs no database. */
  document(): Promise<OpenApiDocument>;
}

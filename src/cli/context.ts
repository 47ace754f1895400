import type { DataSource } from 'typeorm';
import type { ApiKeysService } from '#api-keys';
import type { KeyUsage } from '#key-usage';
import type { OpenApiDocument } from '#openapi';
import type { Application } from '#settings';
import { applicationOf } from '../app.description.js';
import type { AppOptions } from '../app.options.js';

/** Work on the API keys and their usage. */
export type KeyWork<Result> = (apiKeys: ApiKeysService, keyUsage: KeyUsage) => Promise<Result>;

/** The environment of a command: its own process, or the service that runs the command for it. */
export interface CommandContext {
  print(text: string | Buffer): void;
  /** Prints a message for the operator, apart from the result. */
  tell(text: string): void;
  /**
   * Set if the service runs the command, between the requests that it serves: a long command awaits it after each step.
   *
   * @throws StartupError when the command must stop
   */
  readonly pause?: () => Promise<void>;
  readonly application: Application;
  /** Exit code of a completed command; 0 unless the command sets it. */
  exitCode: number;
  withKeys<Result>(work: KeyWork<Result>): Promise<Result>;
  /** @throws StartupError when the database cannot be opened or, unless `any` is wanted, has another schema */
  withDatabase<Result>(schema: 'current' | 'any', work: (dataSource: DataSource) => Promise<Result>): Promise<Result>;
  /** The document of the application. It needs no database. */
  document(): Promise<OpenApiDocument>;
}

/** Runs commands in this process, which opens the database itself. Nest and TypeORM are loaded on demand. */
export class OwnContext implements CommandContext {
  readonly application: Application;
  exitCode = 0;

  constructor(private readonly options: AppOptions) {
    this.application = applicationOf(options);
  }

  print(text: string | Buffer): void {
    process.stdout.write(text);
  }

  tell(text: string): void {
    process.stderr.write(text);
  }

  async withKeys<Result>(work: KeyWork<Result>): Promise<Result> {
    const { keysOfDatabase } = await import('./without-service.js');
    return this.withDatabase('current', (dataSource) => work(...keysOfDatabase(dataSource, this.application)));
  }

  async withDatabase<Result>(
    schema: 'current' | 'any',
    work: (dataSource: DataSource) => Promise<Result>,
  ): Promise<Result> {
    const { Logger } = await import('@nestjs/common');
    const { openDatabase } = await import('#postgres');
    const { readConfig } = await import('../settings.js');
    // Nest's logger would print warnings to standard output, which is for results, such as a new key.
    const warn = (message: string): void => this.tell(`petstore: ${message}\n`);
    Logger.overrideLogger({ log: warn, warn, error: warn });
    const dataSource = await openDatabase(readConfig(), this.application.migrations, schema === 'current');
    try {
      return await work(dataSource);
    } finally {
      await dataSource.destroy();
    }
  }

  async document(): Promise<OpenApiDocument> {
    const { describeApplication } = await import('./without-service.js');
    return describeApplication(this.options);
  }
}

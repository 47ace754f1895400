import type { Type } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { OpenApiDocument } from '#operations';
import { Clock, printableLines, type StartupError } from '#runtime';
import {
  type CommandContext,
  type CoreConfig,
  migrationsOf,
  type OpenedDatabase,
  readConfig,
  type ServiceDefinition,
} from '#definition';
import { messageText, write } from './terminal.js';

/** What commands need of the application. Each function loads the framework when it is called. */
export interface ApplicationFunctions {
  /** See `CommandContext.document`. */
  document(config: CoreConfig): Promise<OpenApiDocument>;
  /** The entities of the application. */
  entities(config: CoreConfig): Promise<Type[]>;
  /** The text of an error that ends a command of a product. */
  failureText(error: unknown, product: string): Promise<string>;
}

/** Runs commands in this process, which opens the database itself. Nest and TypeORM are loaded on demand. */
export class OwnContext implements CommandContext {
  exitCode = 0;
  private lastPrint: Promise<undefined> = Promise.resolve(undefined);

  constructor(
    readonly application: ServiceDefinition,
    private readonly functions: ApplicationFunctions,
  ) {}

  print(text: string): void {
    this.lastPrint = Promise.all([this.lastPrint, write(printableLines(text))]).then(() => undefined);
    // `printFailure` reports the error.
    this.lastPrint.catch(() => undefined);
  }

  /** Why a result could not be printed; undefined if it was printed, or its reader, such as `head`, needs no more. */
  async printFailure(): Promise<StartupError | undefined> {
    const error = await this.lastPrint.catch((failure: StartupError) => failure);
    return (error?.cause as NodeJS.ErrnoException | undefined)?.code === 'EPIPE' ? undefined : error;
  }

  tell(text: string): void {
    process.stderr.write(messageText(text, this.application.product));
  }

  config(): Promise<CoreConfig> {
    return readConfig(this.application);
  }

  async with<Service, Result>(
    _: Type<Service>,
    make: (opened: OpenedDatabase) => Service,
    work: (service: Service) => Promise<Result>,
  ): Promise<Result> {
    const { Database } = await import('#postgres');
    const config = await this.config();
    return this.withDatabase('current', (dataSource) =>
      work(make({ database: new Database(dataSource, config), clock: new Clock() })),
    );
  }

  async withDatabase<Result>(
    schema: 'current' | 'any' | 'inspected',
    work: (dataSource: DataSource) => Promise<Result>,
  ): Promise<Result> {
    const { Logger } = await import('@nestjs/common');
    const { openDatabase } = await import('#postgres');
    // Nest's logger would print warnings to standard output, which is for results, such as a new key.
    const warn = (message: string): void => this.tell(`${this.application.product.name}: ${message}\n`);
    Logger.overrideLogger({ log: warn, warn, error: warn });
    const config = await this.config();
    const dataSource = await openDatabase(
      config,
      await migrationsOf(this.application),
      schema === 'current',
      schema === 'inspected' ? { ...this.application.typeorm, entities: await this.functions.entities(config) } : {},
    );
    try {
      return await work(dataSource);
    } finally {
      await dataSource.destroy();
    }
  }

  async document(): Promise<OpenApiDocument> {
    return this.functions.document(await this.config());
  }
}

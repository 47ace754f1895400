import type { Type } from '@nestjs/common';
import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import type { OpenApiDocument } from '#openapi';
import type { Database } from '#postgres';
import { Clock, printableLines, type StartupError } from '#runtime';
import type { CoreConfig } from '../core-settings.js';
import { migrationsOf, type ServiceDefinition } from '../definition.js';
import { readConfig } from '../settings.js';
import { messageText, readLine, write } from './terminal.js';

/** Commands of a part or of a feature. */
export interface Commands {
  /** The first words of those that the service runs while it has the embedded database. */
  readonly inService?: readonly string[];
  /** Adds the commands. Loads nothing before a command runs. */
  add(program: Command, context: CommandContext): void;
}

/** What a class needs that works on an open database, without Nest. */
export interface OpenedDatabase {
  readonly database: Database;
  readonly clock: Clock;
}

/** Makes the application's module; loads the framework and the features. */
export type LoadApplication = () => Promise<Type>;

/** The environment of a command: its own process, or the service that runs the command for it. */
export interface CommandContext {
  /** Prints a result, with escapes for what a terminal would obey. */
  print(text: string): void;
  /** Writes a result as it is, and waits for its reader. Throws StartupError when it cannot be written. */
  write(bytes: string | Buffer): Promise<void>;
  /** Prints a message for the operator, apart from the result. */
  tell(text: string): void;
  /** The line of standard input; `hint` is for a terminal. Throws StartupError unless there is exactly one. */
  readLine(hint: string): Promise<string>;
  /**
   * Set if the service runs the command, between the requests that it serves: a long command awaits it after each step.
   *
   * @throws StartupError when the command must stop
   */
  readonly pause?: () => Promise<void>;
  readonly application: ServiceDefinition;
  /** Exit code of a completed command; 0 unless the command sets it. */
  exitCode: number;
  /** The settings of this process. */
  config(): Promise<CoreConfig>;
  /**
   * Works with an instance of a class: that of the service, if it runs the command, else one made on the open database.
   *
   * @throws StartupError when the database cannot be opened, or has another schema
   */
  with<Service, Result>(
    type: Type<Service>,
    make: (opened: OpenedDatabase) => Service,
    work: (service: Service) => Promise<Result>,
  ): Promise<Result>;
  /** @throws StartupError when the database cannot be opened or, unless `any` is wanted, has another schema */
  withDatabase<Result>(schema: 'current' | 'any', work: (dataSource: DataSource) => Promise<Result>): Promise<Result>;
  /** The document of the application. It needs no database. */
  document(): Promise<OpenApiDocument>;
  /** The scopes that operations of the application need, and those of a key that is made without any. It needs no database. */
  scopes(): Promise<string[]>;
}

/** Runs commands in this process, which opens the database itself. Nest and TypeORM are loaded on demand. */
export class OwnContext implements CommandContext {
  exitCode = 0;
  private lastPrint: Promise<undefined> = Promise.resolve(undefined);
  private line: Promise<string> | undefined;

  constructor(
    readonly application: ServiceDefinition,
    private readonly load: LoadApplication,
  ) {}

  print(text: string): void {
    this.lastPrint = Promise.all([this.lastPrint, write(printableLines(text))]).then(() => undefined);
    // `printFailure` reports the error.
    this.lastPrint.catch(() => undefined);
  }

  async write(bytes: string | Buffer): Promise<void> {
    await write(bytes);
  }

  /** Why a result could not be printed; undefined if it was printed, or its reader, such as `head`, needs no more. */
  async printFailure(): Promise<StartupError | undefined> {
    const error = await this.lastPrint.catch((failure: StartupError) => failure);
    return (error?.cause as NodeJS.ErrnoException | undefined)?.code === 'EPIPE' ? undefined : error;
  }

  tell(text: string): void {
    process.stderr.write(messageText(text, this.application.product));
  }

  readLine(hint: string): Promise<string> {
    return (this.line ??= readLine(hint));
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
    schema: 'current' | 'any',
    work: (dataSource: DataSource) => Promise<Result>,
  ): Promise<Result> {
    const { Logger } = await import('@nestjs/common');
    const { openDatabase } = await import('#postgres');
    // Nest's logger would print warnings to standard output, which is for results, such as a new key.
    const warn = (message: string): void => this.tell(`${this.application.product.name}: ${message}\n`);
    Logger.overrideLogger({ log: warn, warn, error: warn });
    const dataSource = await openDatabase(
      await this.config(),
      await migrationsOf(this.application),
      schema === 'current',
    );
    try {
      return await work(dataSource);
    } finally {
      await dataSource.destroy();
    }
  }

  async document(): Promise<OpenApiDocument> {
    const { describeApplication } = await import('./without-service.js');
    return describeApplication(await this.load(), await this.config());
  }

  async scopes(): Promise<string[]> {
    const { scopesOf } = await import('./without-service.js');
    return scopesOf(await this.load(), await this.config());
  }
}

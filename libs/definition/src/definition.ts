import type { DynamicModule, Type } from '@nestjs/common';
import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import type { RequestStep } from '#access';
import type { OpenApiDocument } from '#operations';
import type { Database } from '#postgres';
import { type Clock, StartupError } from '#runtime';
import {
  type Application,
  commandHere,
  type DocumentedPart,
  type MigrationSource,
  type Settings,
  type SettingsOf,
} from '#settings';
import type { CoreConfig } from './platform-settings.js';

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

/** The environment of a command: its own process, or the service that runs the command for it. */
export interface CommandContext {
  /** Prints a result, with escapes for what a terminal would obey. */
  print(text: string): void;
  /** Prints a message for the operator, apart from the result. */
  tell(text: string): void;
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
  /**
   * @param schema `any`: whatever it is; `inspected`: likewise, with the entities of the application
   * @throws StartupError when the database cannot be opened, or its schema is not the `current` one that is wanted
   */
  withDatabase<Result>(
    schema: 'current' | 'any' | 'inspected',
    work: (dataSource: DataSource) => Promise<Result>,
  ): Promise<Result>;
  /** The document of the application. It needs no database. */
  document(): Promise<OpenApiDocument>;
}

/** What a part adds to the application, loaded when the application is made. */
export interface LoadedPart {
  readonly module: Type | DynamicModule;
  /** A step of `ApiKeyGuard` that `module` exports. The steps of all parts run in the order of the parts. */
  readonly step?: Type<RequestStep>;
}

/** The values of settings; of unknown settings nothing, so that each part fits into a list of parts. */
type Values<S extends Settings> = string extends keyof S ? unknown : SettingsOf<S>;

/**
 * An optional library as one value. A service uses it by one word in the list of its definition. The value loads no
 * framework: what needs one is loaded by its functions.
 */
export interface Part<S extends Settings = Settings> {
  /** The settings of the part, loaded on demand. `.env.example` lists them at its end. */
  readonly settings?: () => Promise<S>;
  readonly commands?: readonly Commands[];
  readonly document?: DocumentedPart;
  /** Makes the module of the part, and a step of each request. */
  load?(): Promise<LoadedPart>;
  /** Runs before the database is opened. Returns what must run at the end of the process. */
  start?(config: CoreConfig & Values<S>): Promise<(() => Promise<void>) | undefined>;
  /** A line of the text on the console after a start. */
  greeting?(address: string): string;
}

/** One service: its names and texts, the parts that it uses, and what its features bring besides their modules. */
export interface ServiceDefinition<Parts extends readonly Part[] = readonly Part[]> extends Application {
  /**
   * Optional libraries, each once. A request meets their steps in this order. The database always has their tables, so a part may be
   * added later.
   */
  readonly parts: Parts;
  /**
   * The settings of features, each variable with a sentence that says what it does: names that `.env` may set. Their values are
   * refused in quotes and with control characters; everything else checks the file `*.settings.ts` that reads them.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /** Commands of features. */
  readonly commands?: readonly Commands[];
  /** Lines of the text on the console after the first start: a first call, with `$API_KEY`. `base` is the API's base URL. */
  readonly firstCall?: (base: string) => readonly string[];
}

/**
 * Defines a service. Loads no framework, so that the help of its commands is quick.
 *
 * @example export const ORDERS = defineService({ product: { name: 'orders', … }, parts: [rateLimit, docsPages], … });
 */
export function defineService<const Parts extends readonly Part[]>(
  definition: ServiceDefinition<Parts>,
): ServiceDefinition<Parts> {
  const { product } = definition;
  return { ...definition, product: { ...product, command: commandHere(product) } };
}

/** @throws StartupError when a definition has names that could not be shown everywhere */
export function checkDefinition({ product: { name, apiKeyPrefix } }: ServiceDefinition): void {
  const wrong = (what: string): StartupError => new StartupError(`The definition of the service is wrong: ${what}`);
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name)) {
    throw wrong(`product.name must be a letter, then at most 31 letters in lower case, digits and _, not '${name}'.`);
  }
  if (!/^[a-z0-9]{1,7}_$/.test(apiKeyPrefix)) {
    throw wrong(`product.apiKeyPrefix must be 1 to 7 letters in lower case and digits, then _, not '${apiKeyPrefix}'.`);
  }
}

/** The migrations of a service: those that it lists, and those of the platform. */
export async function migrationsOf({ migrations }: ServiceDefinition): Promise<MigrationSource[]> {
  const { API_KEY_MIGRATIONS } = await import('#access');
  const { HISTORY_MIGRATIONS } = await import('#postgres');
  const { IDEMPOTENCY_MIGRATIONS } = await import('#resources');
  return [HISTORY_MIGRATIONS, API_KEY_MIGRATIONS, IDEMPOTENCY_MIGRATIONS, ...migrations];
}

type SettingsIn<P> = P extends { readonly settings: () => Promise<infer S extends Settings> } ? S : never;
type Intersected<U> = (U extends unknown ? (value: U) => void : never) extends (value: infer I) => void ? I : never;

/** The settings of a service: those of the platform, and those of its parts. */
export type ConfigOf<D extends ServiceDefinition> = CoreConfig &
  (Intersected<SettingsIn<D['parts'][number]>> extends infer S extends Settings ? Values<S> : unknown);

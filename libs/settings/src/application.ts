import type { HeaderObject, OpenAPIObject, SecuritySchemeObject, TagObject } from '@nestjs/swagger';
import type { DataSourceOptions, MigrationInterface } from 'typeorm';
import type { Product } from './config.js';

/**
 * A migration class, or the `file:` URL of a directory of compiled files named
 * `<13 digits of the time in ms>-<what it does>.js`, which export migration classes.
 */
export type MigrationSource = (new () => MigrationInterface) | URL;

/** TypeORM's options that a project may set. Settings, migrations and the platform decide about the others. */
export type TypeOrmOptions = Pick<
  DataSourceOptions,
  | ('cache' | 'entitySkipConstructor' | 'invalidWhereValuesBehavior' | 'isolateWhereStatements' | 'isolationLevel')
  | ('logger' | 'logging' | 'maxQueryExecutionTime' | 'namingStrategy' | 'relationLoadStrategy' | 'subscribers')
>;

/** The path at the end of the API's base URL. */
export const BASE_PATH = '/v1';

/** The address beside a base URL of the API: health checks, pages and other versions are below it. It may have a path. */
export function rootUrlOf(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, '');
}

/** What a part adds to the document. */
export interface DocumentedPart {
  /** A point of the list that holds the line `{parts}` in the description of the application. */
  readonly point: string;
  /** Header fields of the responses to requests with a valid API key. */
  readonly headers: Readonly<Record<string, HeaderObject>>;
  /** The codes of the errors of such requests. */
  readonly errors: readonly string[];
}

/** Texts, defaults and migrations of the application that uses the platform. The application provides one instance. */
export abstract class Application {
  readonly product: Product;
  /** Title, version and description in the document; the title is also the heading of the pages. The points of the parts replace a line `{parts}`. */
  readonly info: OpenAPIObject['info'];
  readonly parts?: readonly { readonly document?: DocumentedPart }[];
  /** Tags of the document that no controller describes with `@Tag`. They are listed after the others. */
  readonly tags: readonly TagObject[];
  /** Examples in the document for header fields that name resources of the application, by component name. */
  readonly headerExamples: Readonly<Record<string, string>>;
  /**
   * Security schemes of guards of modules, by name. Operations name them by `@ApiSecurity` and the like. Those of an `Authenticator` are
   * declared there.
   */
  readonly securitySchemes?: Readonly<Record<string, SecuritySchemeObject>>;
  /** Returns the guide at /docs/guide as Markdown. Called at the first request of that page. */
  readonly readGuide: () => string;
  /**
   * Returns the npm package of a client, as `npm pack` writes it. It is served at /docs/client.tgz, so that
   * `npm install <address>` installs it. Called at the first request. Without it, the guide is shown without the
   * paragraphs that name /docs/client.tgz.
   */
  readonly readClient?: (() => Buffer) | undefined;
  /** The version of the program, for operators: a label of the metric `build_info`. */
  readonly release: string;
  /** Scopes of an API key that is created without scopes; at least one. */
  readonly defaultScopes: readonly [string, ...string[]];
  /**
   * Migrations of the features. With those of the platform they are applied in the order of the timestamps in their names, so a
   * migration may refer to every older table. Two with one name, or a name without a timestamp, stop the start.
   */
  readonly migrations: readonly MigrationSource[];
  /**
   * Options for the statements of TypeORM; those of the platform ignore them. `logging` needs a `logger`: TypeORM's own would write
   * between the lines of the log. The table of a `cache` in the database needs a migration.
   */
  readonly typeorm: TypeOrmOptions;
}

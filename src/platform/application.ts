import type { VersioningOptions, VersioningType } from '@nestjs/common';
import type { OpenAPIObject, TagObject } from '@nestjs/swagger';
import type { MigrationInterface } from 'typeorm';

/**
 * Where migrations come from: the class of one, or the `file:` URL of a directory of compiled files,
 * `<13 digits of the time in ms>-<what it does>.js`, whose exports are classes of migrations.
 */
export type MigrationSource = (new () => MigrationInterface) | URL;

/** The version of handlers that declare none, as long as addresses have the version. */
export const DEFAULT_VERSION = '1';

/** Nest's `VersioningType.URI`. Only its type is imported, because the help of a command must not wait for Nest. */
const IN_ADDRESS: VersioningType.URI = 0;

/** Versions are in the address: the routes of every controller are below /v1, unless it declares VERSION_NEUTRAL. */
export const VERSION_IN_ADDRESS: VersioningOptions = { type: IN_ADDRESS, defaultVersion: DEFAULT_VERSION };

/** What the base URL of the API ends in: `/v1`, or nothing where versions are not in the address. */
export function basePathOf({ versioning }: Application): string {
  return versioning.type === IN_ADDRESS ? `/v${DEFAULT_VERSION}` : '';
}

/** Texts, defaults and migrations of the application that uses the platform. The application provides one instance. */
export abstract class Application {
  /** Title, version and description in the document; the title is also the heading of the pages. */
  readonly info: OpenAPIObject['info'];
  /** Tags of the document without a controller that describes them by `@Tag`. They are listed after the others. */
  readonly tags: readonly TagObject[];
  /** Examples in the document for header fields that name resources of the application, by component name. */
  readonly headerExamples: Readonly<Record<string, string>>;
  /** The guide for clients at /docs/guide, as Markdown. Called at its first request. */
  readonly readGuide: () => string;
  /** The version of the program, for operators: a label of `petstore_build_info`. */
  readonly release: string;
  /** Scopes of an API key that is created without scopes; at least one. */
  readonly defaultScopes: readonly [string, ...string[]];
  /** Where requests say the version of the API. */
  readonly versioning: VersioningOptions;
  /** Migrations besides those in `migrations/`. All are applied in the order of the times in their names. */
  readonly migrations: readonly MigrationSource[];
}

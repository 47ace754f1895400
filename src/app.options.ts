import type { DynamicModule, INestApplication, Type, VersioningOptions, VersioningType } from '@nestjs/common';
import type { OpenAPIObject, TagObject } from '@nestjs/swagger';
import type { MigrationSource } from './platform/application.js';

/** What a project adds to the service. */
export interface AppOptions {
  /** Modules besides those of the service. Their routes are matched, and their operations named, behind those. */
  readonly features?: readonly (Type | DynamicModule)[];
  /**
   * Migrations of these modules: classes, or the `file:` URLs of directories of compiled files. They and those of the
   * service are applied in the order of the times in their names.
   */
  readonly migrations?: readonly MigrationSource[];
  /** What the OpenAPI document and the pages say otherwise. */
  readonly document?: DocumentOptions;
  /**
   * Where requests say the version of the API, if not in the address: in a header field, in the media type of `Accept`, or
   * where `extractor` finds it. It holds for the modules of the service, too, so that the animals are at /pets.
   */
  readonly versioning?: Extract<
    VersioningOptions,
    { type: VersioningType.HEADER | VersioningType.MEDIA_TYPE | VersioningType.CUSTOM }
  >;
  /** Scopes of an API key that is made without naming any, instead of those of the service. */
  readonly defaultScopes?: readonly [string, ...string[]];
}

/** Members of `info` that replace those of the service, such as `title`, `version` and `description`; and the rest. */
export interface DocumentOptions extends Partial<OpenAPIObject['info']> {
  /** Tags that no controller describes by `@Tag`, besides those of the service. One of the same name replaces it. */
  readonly tags?: readonly TagObject[];
  /** The guide for clients at /docs/guide, as Markdown. Called at its first request. */
  readonly guide?: () => string;
  /** Examples for header fields, by component name: `Link`, `Location`, `NextPage`. */
  readonly headerExamples?: Readonly<Record<string, string>>;
}

/** What a project adds to the service that it starts. */
export interface ServiceOptions extends AppOptions {
  /**
   * Called with each application before it listens, behind the service's own set-up: the place for what Nest's documentation puts
   * into `main.ts`, such as `app.useWebSocketAdapter`.
   */
  readonly setUp?: (app: INestApplication) => void | Promise<void>;
}

import type { OpenAPIObject, TagObject } from '@nestjs/swagger';

/** Texts and defaults of the application that uses the platform. The application provides one instance. */
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
}

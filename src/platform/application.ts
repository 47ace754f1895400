import type { OpenAPIObject, TagObject } from '@nestjs/swagger';

/** What the platform says in the name of the application that stands on it. The application provides it once. */
export abstract class Application {
  /** Title, version and description of the document; the title heads the pages too. */
  readonly info: OpenAPIObject['info'];
  /** Tags of the document that no controller describes with `@Tag`. They follow those that do. */
  readonly tags: readonly TagObject[];
  /** Examples in the document of header fields whose values name resources of the application, by component name. */
  readonly headerExamples: Readonly<Record<string, string>>;
  /** Scopes of an API key that is made without naming any; at least one. */
  readonly defaultScopes: readonly [string, ...string[]];
}

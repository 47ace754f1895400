import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import type { OpenAPIObject, TagObject } from '@nestjs/swagger';
import type { Application } from '#settings';

/** Additions of a project to the application. */
export interface AppOptions extends Partial<Pick<Application, 'defaultScopes' | 'migrations' | 'typeorm'>> {
  /** The project's modules. Routing and the naming of operations take them after the modules of the service. */
  readonly features?: readonly (Type | DynamicModule)[];
  /** Texts that replace or extend those of the OpenAPI document and the documentation pages. */
  readonly document?: DocumentOptions;
}

/** Members of the document's `info`, such as `title`, that replace those of the service; and further texts. */
export interface DocumentOptions extends Partial<OpenAPIObject['info']> {
  /** Tags that no controller describes with `@Tag`. A tag replaces the service's tag of the same name. */
  readonly tags?: readonly TagObject[];
  /** Returns the guide at /docs/guide as Markdown. Called at the first request of that page. */
  readonly guide?: () => string;
}

/** Additions of a project to the start of the service. */
export interface ServiceOptions extends AppOptions {
  /**
   * Called with each application after the service's own set-up and before it listens. Calls that Nest's documentation
   * puts into `main.ts`, such as `app.useWebSocketAdapter`, belong here.
   */
  readonly setUp?: (app: INestApplication) => void | Promise<void>;
}

import {
  applyDecorators,
  Global,
  Inject,
  type INestApplication,
  Injectable,
  Module,
  SetMetadata,
} from '@nestjs/common';
import {
  ApiTags,
  type OpenAPIObject,
  type OperationObject,
  type PathsObject,
  type ServerObject,
  SwaggerModule,
  type TagObject,
} from '@nestjs/swagger';
import { type Deprecation } from '../deprecation.js';
import { printableLines } from '#runtime';
import { OperationRegistry } from '../operation-registry.js';
import { Application, BASE_PATH, Config, type DocumentedPart, optional, rootUrlOf, type SettingsOf } from '#settings';
import { describeComponents } from './components.js';
import { withClasses } from './classes.internals.js';
import { toJsonSchema } from './json-schema.js';
import { describeOperation } from './operation.js';
import { type Schemes, Security } from './security.js';

export const DOCUMENT_SETTINGS = {
  productionBaseUrl: optional(
    'PUBLIC_BASE_URL',
    'an http or https URL that ends in /v1',
    'URL of this service as its clients reach it. Links in responses use it, and the OpenAPI document lists it. Not set: links ' +
      'begin with http://localhost and PORT, and the document names the server that has sent it.',
    (text) => {
      // ASCII, as header fields require.
      const href = URL.canParse(text) ? new URL(text).href : '';
      return /^https?:\/\/[^/@?#]+(\/[^?#]*)?\/v1\/?$/.test(href) ? href.replace(/\/$/, '') : undefined;
    },
  ),
};

const TAG_METADATA = 'platform:tag';

/**
 * Puts the operations of a controller under a tag of the document, and describes the tag there.
 *
 * @example `@Tag('Visits', 'Visits to a veterinarian.') @Controller('visits') class VisitsController`
 */
export function Tag(name: string, description: string): ClassDecorator {
  return applyDecorators(ApiTags(name), SetMetadata(TAG_METADATA, { name, description }));
}

/** An operation with `@Deprecated`. */
export interface DeprecatedOperation extends Deprecation {
  /** The name of the operation (`OperationRegistry`). */
  readonly operationId: string;
  /** Method and path, such as `GET /orders/{orderId}`. */
  readonly endpoint: string;
  readonly summary: string;
  /** The time in ms since 1970 from which it answers 410; Infinity for never. */
  readonly removedAt: number;
}

/**
 * The OpenAPI 3.1 document of the service: every handler that has a version, except those of `@All`. @nestjs/swagger finds
 * the operations. This class adds the platform's behaviour to each of them: authentication, errors, header fields, deprecation.
 */
@Injectable()
export class OpenApiDocument {
  /** The document as indented JSON that ends with a line feed; empty before `describe`. */
  json = '';
  /** The operations with `@Deprecated`, in the order of the document. A handler with several paths has the first one. */
  readonly deprecations: DeprecatedOperation[] = [];
  private yamlText: string | undefined;

  constructor(
    @Inject(Config) private readonly config: SettingsOf<typeof DOCUMENT_SETTINGS>,
    private readonly application: Application,
    private readonly operations: OperationRegistry,
  ) {}

  /** The scopes that operations need, also those of the platform that are not in the document, and those of a key made without any. */
  get scopes(): string[] {
    return [...new Set([...this.operations.scopes, ...this.application.defaultScopes])];
  }

  /**
   * Makes the document of an application, whose controllers must exist. Every start makes it, in tens of ms, so that an error
   * in a decorator stops the start.
   *
   * @param ofCallers the security schemes of authenticators
   * @throws StartupError when a security scheme is not declared, or two classes have the same name,
   *   or an initial value is beyond its limits
   */
  describe(app: INestApplication, ofCallers: Schemes = {}): void {
    const { info, parts = [] } = this.application;
    const documented = parts.flatMap(({ document }) => document ?? []);
    const added: DocumentedPart = {
      point: documented.map(({ point }) => `- ${point}\n`).join(''),
      headers: Object.assign({}, ...documented.map(({ headers }) => headers)) as DocumentedPart['headers'],
      errors: documented.flatMap(({ errors }) => errors),
    };
    const description = info.description?.replace('{parts}\n', () => added.point);
    const head = { openapi: '3.1.1', info: { ...info, description } };
    // A handler with several paths has an index behind the name of its method.
    const operationIdFactory = (controller: string, method: string): string =>
      `${controller}.${method.replace(/\[\d+\]$/, '')}`;
    const found = withClasses(() => SwaggerModule.createDocument(app, head, { operationIdFactory }));
    const schemas = Object.fromEntries(
      Object.entries(found.components?.schemas ?? {}).map(([name, schema]) => [name, toJsonSchema({ ...schema })]),
    );
    const security = new Security(this.application, ofCallers);
    const paths = this.describePaths(found.paths, added, security);
    const document: OpenAPIObject = {
      ...head,
      servers: [this.describeServer(BASE_PATH)],
      security: [...security.requirements],
      tags: this.describeTags(),
      paths,
      components: describeComponents(paths, schemas, this.application, added, security.schemes),
    };
    // Patterns have characters that a terminal hides.
    this.json = printableLines(`${JSON.stringify(document, null, 2)}\n`);
  }

  /** The document as YAML, made at the first call. */
  async yaml(): Promise<string> {
    // The library has 73 files, which a start need not load.
    const { stringify } = await import('yaml');
    // Parsed from the JSON, so that YAML gets no anchors for shared objects and no undefined members.
    return (this.yamlText ??= stringify(JSON.parse(this.json), { lineWidth: 120, compat: 'yaml-1.1' }));
  }

  /** @param prefix the end of the URL: `/v1` or empty */
  private describeServer(prefix: string): ServerObject {
    const { productionBaseUrl: url } = this.config;
    if (url === undefined) return { url: prefix || '/', description: 'This service' };
    return { url: rootUrlOf(url) + prefix, description: 'Production' };
  }

  /** The tags of controllers, then those of the application. If a name is described twice, the first description counts. */
  private describeTags(): TagObject[] {
    const ofControllers = [...this.operations.all.keys()].flatMap(
      (controller) => (Reflect.getMetadata(TAG_METADATA, controller) as TagObject | undefined) ?? [],
    );
    const tags = [...ofControllers, ...this.application.tags];
    return tags.filter(({ name }, index) => tags.findIndex((tag) => tag.name === name) === index);
  }

  /**
   * The paths of the API. Those of version 1 are below the document's base URLs. Paths of other versions have base URLs
   * without `/v1`, because two versions may have the same path.
   */
  private describePaths(found: PathsObject, added: DocumentedPart, schemes: Security): PathsObject {
    const paths: PathsObject = {};
    const used = new Set<string>();
    for (const [fullPath, methods] of Object.entries(found)) {
      const isBelowBase = fullPath.startsWith(`${BASE_PATH}/`);
      const path = isBelowBase ? fullPath.slice(BASE_PATH.length) : fullPath;
      for (const [method, described] of Object.entries(methods as Record<string, OperationObject>)) {
        const operation = this.operations.byKey.get(described.operationId ?? '');
        if (!operation?.isListed) continue;
        let operationId = operation.name;
        // Further paths and versions of a handler get a number.
        for (let number = 2; used.has(operationId); number++) operationId = `${operation.name}_${number}`;
        used.add(operationId);
        const item = (paths[path] ??= isBelowBase ? {} : { servers: [this.describeServer('')] });
        const security = schemes.of(operation.key, operation.isPublic, described.security);
        const own = { ...described, operationId, security };
        Object.assign(item, { [method]: describeOperation(method, own, { ...operation, ...added }) });
        if (operation.deprecation && operationId === operation.name) {
          const { removedAt, deprecation } = operation;
          const endpoint = `${method.toUpperCase()} ${path}`;
          const { summary = '' } = described;
          this.deprecations.push({ ...deprecation, operationId, endpoint, summary, removedAt });
        }
      }
    }
    return paths;
  }
}

@Global()
@Module({ providers: [OpenApiDocument], exports: [OpenApiDocument] })
export class OpenApiModule {}

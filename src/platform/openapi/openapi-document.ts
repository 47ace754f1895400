import { type INestApplication, Injectable, type Type } from '@nestjs/common';
import { DiscoveryService, Reflector } from '@nestjs/core';
import {
  type OpenAPIObject,
  type OperationObject,
  type PathsObject,
  type ResponseObject,
  type ServerObject,
  SwaggerModule,
  type TagObject,
} from '@nestjs/swagger';
import { stringify } from 'yaml';
import { Config } from '../../config.js';
import { Application } from '../application.js';
import type { Deprecation } from '../deprecation/deprecation.js';
import { describeComponents } from './components.js';
import { type Schemas, toJsonSchema } from './json-schema.js';
import { type OperationTraits, readTraits } from './operation-traits.js';
import { describeOperation } from './operation.js';
import { TAG_METADATA } from './tag.decorator.js';

/** The base URLs of the service end in it. The paths of the document do not contain it. */
const VERSION_PREFIX = '/v1';

const OPENAPI_VERSION = '3.1.1';

/** An operation with `@Deprecated`. */
export interface DeprecatedOperation extends Deprecation {
  readonly operationId: string;
  /** Such as `GET /orders/{orderId}`. */
  readonly endpoint: string;
  readonly summary: string;
}

type Operations = Record<string, OperationObject>;

/**
 * The OpenAPI 3.1 document of the service. It has every handler below /v1. @nestjs/swagger finds the operations; the
 * document adds what the platform does for each of them: authentication, errors, header fields, deprecation.
 */
@Injectable()
export class OpenApiDocument {
  private text: string | undefined;
  private yamlText: string | undefined;
  private deprecated: DeprecatedOperation[] = [];

  constructor(
    private readonly config: Config,
    private readonly application: Application,
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
  ) {}

  /**
   * Makes the document of an application, whose controllers must exist. Every start does so, in some tens of ms, so that an
   * error of a decorator stops the start.
   *
   * @throws Error when two handlers have the same name, or the handler of an operation is ambiguous
   */
  describe(app: INestApplication): void {
    this.deprecated = [];
    this.yamlText = undefined;
    this.text = `${JSON.stringify(this.createDocument(app), null, 2)}\n`;
  }

  /** The document as indented JSON that ends with a line feed. */
  get json(): string {
    if (this.text === undefined) {
      throw new Error('The document is not there before describe().');
    }
    return this.text;
  }

  /** The same document as YAML. */
  get yaml(): string {
    // Parsed from the JSON, so that YAML gets no anchors for shared objects and no undefined members.
    return (this.yamlText ??= stringify(JSON.parse(this.json), { lineWidth: 120 }));
  }

  /** The operations that carry `@Deprecated`, in the order of the document. */
  get deprecations(): readonly DeprecatedOperation[] {
    return this.deprecated;
  }

  /** The header fields that the document describes in responses, sorted. */
  get responseHeaders(): string[] {
    const document = JSON.parse(this.json) as OpenAPIObject;
    const responses = [
      ...operationsOf(document).flatMap((operation) => Object.values(operation.responses)),
      ...Object.values(document.components?.responses ?? {}),
    ] as ResponseObject[];
    return sortedNames(responses.flatMap(({ headers = {} }) => Object.keys(headers)));
  }

  /** The header fields that the document describes as parameters of operations, sorted. */
  get requestHeaders(): string[] {
    const parameters = operationsOf(JSON.parse(this.json) as OpenAPIObject).flatMap(
      (operation) => operation.parameters ?? [],
    );
    return sortedNames(
      parameters.flatMap((parameter) => ('in' in parameter && parameter.in === 'header' ? parameter.name : [])),
    );
  }

  private createDocument(app: INestApplication): OpenAPIObject {
    const head = { openapi: OPENAPI_VERSION, info: this.application.info };
    const found = SwaggerModule.createDocument(app, head, { operationIdFactory: handlerKey });
    const schemas = Object.fromEntries(
      Object.entries(found.components?.schemas ?? {})
        .filter(([name]) => name !== Buffer.name)
        .map(([name, schema]) => [name, toJsonSchema({ ...schema })]),
    );
    const paths = this.describePaths(found.paths, schemas);
    return {
      ...head,
      servers: this.describeServers(),
      security: [{ bearerAuth: [] }],
      tags: this.describeTags(),
      paths,
      components: describeComponents(paths, schemas, this.application),
    };
  }

  /** The deployments whose addresses are set. Without any, the server that the document comes from. */
  private describeServers(): ServerObject[] {
    const { productionBaseUrl, stagingBaseUrl } = this.config;
    const servers = [
      ...(productionBaseUrl === undefined ? [] : [{ url: productionBaseUrl, description: 'Production' }]),
      ...(stagingBaseUrl === undefined ? [] : [{ url: stagingBaseUrl, description: 'Staging' }]),
    ];
    return servers.length > 0 ? servers : [{ url: VERSION_PREFIX, description: 'This service' }];
  }

  /** The tags that controllers describe, then those of the application. */
  private describeTags(): TagObject[] {
    const ofControllers = this.discovery
      .getControllers()
      .map(({ metatype }) => this.reflector.get<TagObject | undefined>(TAG_METADATA, metatype as Type));
    return [...ofControllers.filter((tag) => tag !== undefined), ...this.application.tags];
  }

  /** The paths below the version prefix, without it. Paths outside are not part of the API. */
  private describePaths(found: PathsObject, schemas: Schemas): PathsObject {
    const handlers = this.traitsByHandler();
    const names = new Map<string, string>();
    const paths: PathsObject = {};
    for (const [fullPath, item] of Object.entries(found).filter(([path]) => path.startsWith(`${VERSION_PREFIX}/`))) {
      const path = fullPath.slice(VERSION_PREFIX.length);
      const operations: Operations = {};
      for (const [method, operation] of Object.entries(item as Operations)) {
        const endpoint = `${method.toUpperCase()} ${path}`;
        const handler = operation.operationId ?? '';
        const [traits, another] = handlers.get(handler) ?? [];
        if (!traits || another) {
          throw new Error(
            `${endpoint} cannot be described: '${handler}' does not tell which handler it is. Give each controller a name ` +
              'of its own, each handler one path and one method, and no operationId: that is always the name of the handler.',
          );
        }
        const { name, deprecation } = traits;
        const namesake = names.get(name);
        if (namesake !== undefined) {
          throw new Error(
            `${namesake} and ${handler} have the same name, which must be unique as an operationId: rename one.`,
          );
        }
        names.set(name, handler);
        operations[method] = describeOperation(method, operation, traits, schemas);
        if (deprecation) {
          this.deprecated.push({ ...deprecation, operationId: name, endpoint, summary: operation.summary ?? '' });
        }
      }
      paths[path] = operations;
    }
    return paths;
  }

  private traitsByHandler(): Map<string, OperationTraits[]> {
    const traits = new Map<string, OperationTraits[]>();
    for (const { metatype } of this.discovery.getControllers()) {
      const controller = metatype as Type;
      for (const trait of readTraits(this.reflector, controller)) {
        const key = handlerKey(controller.name, trait.name);
        traits.set(key, [...(traits.get(key) ?? []), trait]);
      }
    }
    return traits;
  }
}

function operationsOf({ paths }: OpenAPIObject): OperationObject[] {
  return Object.values(paths).flatMap((item) => Object.values(item as Operations));
}

function sortedNames(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

function handlerKey(controller: string, method: string): string {
  return `${controller}.${method}`;
}

import { type INestApplication, VERSION_NEUTRAL, type VersioningOptions, VersioningType } from '@nestjs/common';
import {
  type OpenAPIObject,
  type OperationObject,
  type ParameterObject,
  type ResponseObject,
  SwaggerModule,
} from '@nestjs/swagger';
import { DEFAULT_VERSION } from '../../application.js';
import type { OperationTraits } from '../responses/operation-traits.js';

/** A path prefix that marks versions for @nestjs/swagger if requests name them elsewhere. No route begins with it. */
const VERSION_MARK = '~version=';

/**
 * Lets @nestjs/swagger find the operations of an application. It keeps one operation for each path and method. So if
 * versions are not part of the path, they are added to it during the search; `withoutMark` removes them.
 */
export function findOperations(
  app: INestApplication,
  versioning: VersioningOptions,
  head: Parameters<typeof SwaggerModule.createDocument>[1],
  operationIdFactory: (controller: string, method: string) => string,
): OpenAPIObject {
  const find = (): OpenAPIObject => SwaggerModule.createDocument(app, head, { operationIdFactory });
  const { type, defaultVersion } = versioning;
  if (type === VersioningType.URI) return find();
  app.enableVersioning({ type: VersioningType.URI, prefix: VERSION_MARK, defaultVersion });
  try {
    return find();
  } finally {
    app.enableVersioning(versioning);
  }
}

/** The path of a route as in requests, without the version mark. */
export function withoutMark(path: string): string {
  return path.startsWith(`/${VERSION_MARK}`) ? path.replace(/^\/[^/]*/, '') || '/' : path;
}

/** Whether a handler is version-neutral, and so not part of the API. */
export function isNeutral({ versions }: OperationTraits): boolean {
  return versions.length > 0 && versions.every((version) => version === VERSION_NEUTRAL);
}

/** The version in a path; undefined if the path contains none. */
export function versionInAddress(path: string, { versions }: OperationTraits): unknown {
  return (versions.length > 0 ? versions : [DEFAULT_VERSION]).find(
    (version) => typeof version === 'string' && `${path}/`.startsWith(`/v${version}/`),
  );
}

/**
 * Documents in an operation how requests name its version. Also returns a fragment for its path: OpenAPI allows one
 * operation for each path and method, and clients do not send fragments.
 */
export function withVersion(
  operation: OperationObject,
  versioning: VersioningOptions,
  { versions: declared }: OperationTraits,
): { operation: OperationObject; fragment: string } {
  const all: readonly unknown[] = declared.length > 0 ? declared : [versioning.defaultVersion ?? []].flat();
  const versions = all.filter((version) => typeof version === 'string');
  if (versions.length === 0) return { operation, fragment: '' };
  const required = !all.includes(VERSION_NEUTRAL);
  const fragment = (way: string): string => `#${way}${versions.join(',')}`;
  switch (versioning.type) {
    case VersioningType.HEADER:
      return {
        operation: withHeader(operation, versioning.header, versions, required),
        fragment: fragment(`${versioning.header}=`),
      };
    case VersioningType.MEDIA_TYPE: {
      const parameters = versions.map((version) => `;${versioning.key}${version}`);
      const accepted = parameters.map((parameter) => `\`Accept: application/json${parameter}\``).join(' or ');
      return {
        operation: withSentence(withMediaTypes(operation, parameters), `Say the version with ${accepted}.`),
        fragment: fragment(versioning.key),
      };
    }
    default:
      return {
        operation: withSentence(operation, `Version ${versions.map((version) => `\`${version}\``).join(' and ')}.`),
        fragment: fragment('version='),
      };
  }
}

function withHeader(operation: OperationObject, name: string, versions: string[], required: boolean): OperationObject {
  const { parameters = [] } = operation;
  const isDeclared = (parameter: (typeof parameters)[number]): boolean =>
    'in' in parameter && parameter.in === 'header' && parameter.name.toLowerCase() === name.toLowerCase();
  if (parameters.some(isDeclared)) return operation;
  const parameter: ParameterObject = {
    name,
    in: 'header',
    required,
    description: 'The version of the operation.',
    schema: { type: 'string', enum: versions, example: versions[0] },
  };
  return { ...operation, parameters: [...parameters, parameter] };
}

/** Adds the versioned media types to those of the answers, as the first ones, which clients prefer. */
function withMediaTypes(operation: OperationObject, parameters: readonly string[]): OperationObject {
  const responses = Object.entries(operation.responses).map(([status, response]): [string, ResponseObject] => {
    const { content, ...others } = response as ResponseObject;
    if (!content || !status.startsWith('2')) return [status, response as ResponseObject];
    const types = Object.entries(content);
    const versioned = types.flatMap(([type, body]) => parameters.map((parameter) => [`${type}${parameter}`, body]));
    return [status, { ...others, content: Object.fromEntries([...versioned, ...types]) as typeof content }];
  });
  return { ...operation, responses: Object.fromEntries(responses) };
}

function withSentence(operation: OperationObject, sentence: string): OperationObject {
  return { ...operation, description: [operation.description, sentence].filter(Boolean).join('\n\n') };
}

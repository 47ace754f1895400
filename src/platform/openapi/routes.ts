import type { OperationObject, PathsObject } from '@nestjs/swagger';
import { DEFAULT_VERSION } from '../application.js';
import type { OperationTraits } from './responses/operation-traits.js';

/** The methods that OpenAPI 3.1 allows for a path. Handlers of other methods, such as PROPFIND, are left out. */
export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** The operations of a path item, by their methods in lower case. */
export type Operations = Record<string, OperationObject>;

/** An operation that @nestjs/swagger has found, and the handler that answers it. */
export interface Route {
  readonly fullPath: string;
  /** The version in the path. */
  readonly version: string;
  readonly method: string;
  readonly operation: OperationObject;
  readonly traits: OperationTraits;
}

/** The operations of handlers that belong to a version. */
export function routesOf(found: PathsObject, handlers: ReadonlyMap<string, OperationTraits>): Route[] {
  return Object.entries(found).flatMap(([fullPath, item]) =>
    Object.entries(item as Operations).flatMap(([method, operation]) => {
      const traits = handlers.get(handlerOf(method, operation.operationId ?? '', handlers));
      const version = traits && versionIn(fullPath, traits);
      const isListed = traits !== undefined && version !== undefined && METHODS.includes(method);
      return isListed ? [{ fullPath, version, method, operation, traits }] : [];
    }),
  );
}

/** The version in a path; undefined for a version-neutral handler, which is no part of the API. */
function versionIn(path: string, { versions }: OperationTraits): string | undefined {
  return (versions.length > 0 ? versions : [DEFAULT_VERSION]).find(
    (version) => typeof version === 'string' && `${path}/`.startsWith(`/v${version}/`),
  ) as string | undefined;
}

/** The key of a handler, from the operationId of @nestjs/swagger, which may append an index for each path, or the method. */
function handlerOf(method: string, operationId: string, handlers: ReadonlyMap<string, OperationTraits>): string {
  const keys = [operationId, operationId.replace(/\[\d+\]$/, ''), operationId.replace(new RegExp(`_${method}$`), '')];
  return keys.find((key) => handlers.has(key)) ?? operationId;
}

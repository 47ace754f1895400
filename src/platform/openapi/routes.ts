import type { OperationObject, PathsObject } from '@nestjs/swagger';
import type { OperationTraits } from './responses/operation-traits.js';
import { isNeutral, withoutMark } from './versions/versions.js';

/** The methods that OpenAPI 3.1 allows for a path. Handlers of other methods, such as PROPFIND, are left out. */
export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** The operations of a path item, by their methods in lower case. */
export type Operations = Record<string, OperationObject>;

/** An operation that @nestjs/swagger has found, and the handler that answers it. */
export interface Route {
  readonly fullPath: string;
  readonly method: string;
  readonly operation: OperationObject;
  readonly traits: OperationTraits;
}

/** The operations of handlers that belong to a version. A handler of several versions is found once for each; listed once. */
export function routesOf(found: PathsObject, handlers: ReadonlyMap<string, OperationTraits>): Route[] {
  const routes = new Map<string, Route>();
  for (const [fullPath, item] of Object.entries(found)) {
    for (const [method, operation] of Object.entries(item as Operations)) {
      if (!METHODS.includes(method)) continue;
      const traits = handlers.get(handlerOf(method, operation.operationId ?? '', handlers));
      if (!traits || isNeutral(traits)) continue;
      const key = `${traits.name} ${method} ${withoutMark(fullPath)}`;
      if (!routes.has(key)) routes.set(key, { fullPath, method, operation, traits });
    }
  }
  return [...routes.values()];
}

/** The key of a handler, from the operationId of @nestjs/swagger, which may append an index for each path, or the method. */
function handlerOf(method: string, operationId: string, handlers: ReadonlyMap<string, OperationTraits>): string {
  const keys = [operationId, operationId.replace(/\[\d+\]$/, ''), operationId.replace(new RegExp(`_${method}$`), '')];
  return keys.find((key) => handlers.has(key)) ?? operationId;
}

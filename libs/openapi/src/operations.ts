import type { OperationObject, PathsObject } from '@nestjs/swagger';
import type { Operation, OperationRegistry } from '#operations';
import type { DocumentedPart } from '#settings';

/** What a handler declares, and what the parts add to its responses. */
export type Traits = Operation & Pick<DocumentedPart, 'headers' | 'errors'>;

/** An operation that @nestjs/swagger has found, and the handler that answers it. */
export interface FoundOperation {
  readonly fullPath: string;
  readonly method: string;
  readonly operationId: string;
  readonly described: OperationObject;
  readonly traits: Traits;
}

/**
 * The operationId that @nestjs/swagger gets for a handler without `@ApiOperation({ operationId })`.
 *
 * @param method the name of the method; with an index if the handler has several paths
 */
export function handlerKey(controller: string, method: string): string {
  return `${controller}.${method.replace(/\[\d+\]$/, '')}`;
}

/**
 * The operations of handlers that belong to a version, which is part of the path. Handlers of `@All` are left out.
 *
 * @throws Error when two handlers cannot be distinguished
 */
export function findOperations(
  found: PathsObject,
  registry: OperationRegistry,
  { headers, errors }: DocumentedPart,
): readonly FoundOperation[] {
  const handlers = operationsByKey(registry);
  const used = new Set<string>();
  return Object.entries(found).flatMap(([fullPath, item]) =>
    Object.entries(item as Record<string, OperationObject>).flatMap(([method, described]) => {
      const traits = handlers.get(described.operationId ?? '');
      if (!traits?.isListed) return [];
      let operationId = traits.name;
      // Further paths and versions of a handler get a number.
      for (let number = 2; used.has(operationId); number++) operationId = `${traits.name}_${number}`;
      used.add(operationId);
      return [{ fullPath, method, operationId, described, traits: { ...traits, headers, errors } }];
    }),
  );
}

/** All operations, by the operationId that @nestjs/swagger gets. */
function operationsByKey(registry: OperationRegistry): Map<string, Operation> {
  const operations = new Map<string, Operation>();
  for (const operation of [...registry.all.values()].flatMap((handlers) => [...handlers.values()])) {
    const { key } = operation;
    if (operations.has(key)) {
      throw new Error(
        `There are two handlers ${key}. Rename a controller, or give one a name with @ApiOperation({ operationId: '…' }).`,
      );
    }
    operations.set(key, operation);
  }
  return operations;
}

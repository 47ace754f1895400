import { HttpStatus, RequestMethod, type Type, VERSION_NEUTRAL } from '@nestjs/common';
import type { OperationObject, PathsObject } from '@nestjs/swagger';
import type { Operation, OperationRegistry } from '#api-keys';
import { type Deprecation, DEPRECATION_METADATA, STABILITY_METADATA, type StabilityLevel } from '#deprecation';
import { type ErrorDefinition, FAILURES_METADATA } from '#errors';
import { IDEMPOTENT_METADATA } from '#idempotency';
import { HTTP_CODE_METADATA, METHOD_METADATA, VERSION_METADATA } from '#internals';

/** Declarations of a handler's decorators that @nestjs/swagger does not read. */
export interface OperationTraits extends Operation {
  /** The handler has one method and belongs to a version. */
  readonly isListed: boolean;
  /** The status of a success. */
  readonly status: number;
  readonly failures: readonly ErrorDefinition[];
  readonly deprecation: Deprecation | undefined;
  readonly stability: StabilityLevel | undefined;
  /** Whether the handler takes an `Idempotency-Key`. */
  readonly isIdempotent: boolean;
}

/** An operation that @nestjs/swagger has found, and the handler that answers it. */
export interface FoundOperation {
  readonly fullPath: string;
  readonly method: string;
  readonly operationId: string;
  readonly described: OperationObject;
  readonly traits: OperationTraits;
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
 * @throws Error when two handlers cannot be distinguished, or a public handler has `@Idempotent()`
 */
export function findOperations(found: PathsObject, registry: OperationRegistry): readonly FoundOperation[] {
  const handlers = traitsByKey(registry);
  const used = new Set<string>();
  return Object.entries(found).flatMap(([fullPath, item]) =>
    Object.entries(item as Record<string, OperationObject>).flatMap(([method, described]) => {
      const traits = handlers.get(described.operationId ?? '');
      if (!traits?.isListed) return [];
      let operationId = traits.name;
      // Further paths and versions of a handler get a number.
      for (let number = 2; used.has(operationId); number++) operationId = `${traits.name}_${number}`;
      used.add(operationId);
      return [{ fullPath, method, operationId, described, traits }];
    }),
  );
}

/** The traits of all handlers, by the operationId that @nestjs/swagger gets. */
function traitsByKey(registry: OperationRegistry): Map<string, OperationTraits> {
  const traits = new Map<string, OperationTraits>();
  for (const [controller, operations] of registry.all) {
    for (const [handler, operation] of operations) {
      const { key, isPublic } = operation;
      const read = readTraits(controller, handler);
      if (traits.has(key)) {
        throw new Error(
          `There are two handlers ${key}. Rename a controller, or give one a name with @ApiOperation({ operationId: '…' }).`,
        );
      }
      if (isPublic && read.isIdempotent) {
        throw new Error(`${key} cannot be @Public() and @Idempotent(): a key belongs to a client.`);
      }
      traits.set(key, { ...operation, ...read });
    }
  }
  return traits;
}

function readTraits(controller: Type, handler: object): Omit<OperationTraits, keyof Operation> {
  const own = <T>(key: string): T | undefined => Reflect.getMetadata(key, handler) as T | undefined;
  // The handler's decorator overrides the controller's.
  const either = <T>(key: string): T | undefined =>
    own<T>(key) ?? (Reflect.getMetadata(key, controller) as T | undefined);
  const method = own<RequestMethod>(METHOD_METADATA);
  const isNeutral = [either<unknown>(VERSION_METADATA)].flat().includes(VERSION_NEUTRAL);
  return {
    isListed: method !== RequestMethod.ALL && !isNeutral,
    status: own<number>(HTTP_CODE_METADATA) ?? (method === RequestMethod.POST ? HttpStatus.CREATED : HttpStatus.OK),
    failures: either<ErrorDefinition[]>(FAILURES_METADATA) ?? [],
    deprecation: own(DEPRECATION_METADATA),
    stability: own(STABILITY_METADATA),
    isIdempotent: own(IDEMPOTENT_METADATA) ?? false,
  };
}

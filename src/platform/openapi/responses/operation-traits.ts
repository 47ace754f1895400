import { HttpStatus, RequestMethod, type Type } from '@nestjs/common';
import { HTTP_CODE_METADATA, METHOD_METADATA, VERSION_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type Reflector } from '@nestjs/core';
import type { Operation, OperationRegistry } from '../../auth/operation-registry.js';
import type { ErrorDefinition } from '../../errors/error-catalogue.js';
import { IDEMPOTENT_METADATA } from '../../idempotency/idempotent.decorator.js';
import { type Deprecation, DEPRECATION_METADATA } from '../../deprecation/deprecation.js';
import { STABILITY_METADATA, type StabilityLevel } from '../../deprecation/stability.decorator.js';
import { FAILURES_METADATA } from './fails-with.decorator.js';

/** Declarations of a handler's decorators that @nestjs/swagger does not read. */
export interface OperationTraits extends Operation {
  /** The name of the method. */
  readonly method: string;
  /** Whether the handler serves all methods (`@All()`). */
  readonly isOfAllMethods: boolean;
  /** The versions that `@Version()` or its controller declares; empty for the default version of the application. */
  readonly versions: readonly unknown[];
  /** The status of a success. */
  readonly status: number;
  readonly failures: readonly ErrorDefinition[];
  readonly deprecation: Deprecation | undefined;
  readonly stability: StabilityLevel | undefined;
  /** Whether the handler takes an `Idempotency-Key`. */
  readonly isIdempotent: boolean;
}

/**
 * The traits of every handler of a controller.
 *
 * @throws Error when a public handler has `@Idempotent()`
 */
export function readTraits(reflector: Reflector, operations: OperationRegistry, controller: Type): OperationTraits[] {
  const prototype = controller.prototype as Record<string, () => unknown>;
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((method) => {
    const handler = prototype[method] as () => unknown;
    const operation = operations.of(controller, handler);
    if (operation === undefined) return [];
    // The handler's decorator overrides the controller's.
    const either = <T>(key: string): T | undefined =>
      reflector.getAllAndOverride<T | undefined>(key, [handler, controller]);
    const isIdempotent = reflector.get<boolean | undefined>(IDEMPOTENT_METADATA, handler) ?? false;
    if (operation.isPublic && isIdempotent) {
      throw new Error(`${controller.name}.${method} cannot be @Public() and @Idempotent(): a key belongs to a client.`);
    }
    const requestMethod = reflector.get<RequestMethod>(METHOD_METADATA, handler);
    const usual = requestMethod === RequestMethod.POST ? HttpStatus.CREATED : HttpStatus.OK;
    return {
      ...operation,
      method,
      isOfAllMethods: requestMethod === RequestMethod.ALL,
      versions: [either<unknown>(VERSION_METADATA) ?? []].flat(),
      status: reflector.get<number | undefined>(HTTP_CODE_METADATA, handler) ?? usual,
      failures: either<ErrorDefinition[]>(FAILURES_METADATA) ?? [],
      deprecation: reflector.get<Deprecation | undefined>(DEPRECATION_METADATA, handler),
      stability: reflector.get<StabilityLevel | undefined>(STABILITY_METADATA, handler),
      isIdempotent,
    };
  });
}

import { HttpStatus, RequestMethod, type Type } from '@nestjs/common';
import { HTTP_CODE_METADATA, METHOD_METADATA, VERSION_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type Reflector } from '@nestjs/core';
import { type OperationNames, ownIdOf } from '../../auth/operation-names.js';
import { PUBLIC_METADATA } from '../../auth/public.decorator.js';
import { REQUIRED_SCOPES_METADATA } from '../../auth/require-scopes.decorator.js';
import type { ErrorDefinition } from '../../errors/error-catalogue.js';
import { IDEMPOTENT_METADATA } from '../../idempotency/idempotent.decorator.js';
import { type Deprecation, DEPRECATION_METADATA } from '../../deprecation/deprecation.js';
import { STABILITY_METADATA, type StabilityLevel } from '../../deprecation/stability.decorator.js';
import { FAILURES_METADATA } from './fails-with.decorator.js';

/** Declarations of a handler's decorators that @nestjs/swagger does not read. */
export interface OperationTraits {
  /** The name of the method. */
  readonly method: string;
  /** The name of the operation (`OperationNames`). */
  readonly name: string;
  /** The operationId of `@ApiOperation`. */
  readonly ownId: string | undefined;
  /** Whether the handler serves all methods (`@All()`). */
  readonly isOfAllMethods: boolean;
  /** The versions that `@Version()` or its controller declares; empty for the default version of the application. */
  readonly versions: readonly unknown[];
  /** The status of a success. */
  readonly status: number;
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
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
export function readTraits(reflector: Reflector, names: OperationNames, controller: Type): OperationTraits[] {
  const prototype = controller.prototype as Record<string, () => unknown>;
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((method) => {
    const name = names.of(controller, method);
    if (name === undefined) return [];
    const handler = prototype[method] as () => unknown;
    // The handler's decorator overrides the controller's, as in ApiKeyGuard.
    const either = <T>(key: string): T | undefined =>
      reflector.getAllAndOverride<T | undefined>(key, [handler, controller]);
    const isPublic = either<boolean>(PUBLIC_METADATA) ?? false;
    const isIdempotent = reflector.get<boolean | undefined>(IDEMPOTENT_METADATA, handler) ?? false;
    if (isPublic && isIdempotent) {
      throw new Error(`${controller.name}.${method} cannot be @Public() and @Idempotent(): a key belongs to a client.`);
    }
    const requestMethod = reflector.get<RequestMethod>(METHOD_METADATA, handler);
    const usual = requestMethod === RequestMethod.POST ? HttpStatus.CREATED : HttpStatus.OK;
    return {
      method,
      name,
      ownId: ownIdOf(handler),
      isOfAllMethods: requestMethod === RequestMethod.ALL,
      versions: [either<unknown>(VERSION_METADATA) ?? []].flat(),
      status: reflector.get<number | undefined>(HTTP_CODE_METADATA, handler) ?? usual,
      isPublic,
      scopes: isPublic ? [] : (either<string[]>(REQUIRED_SCOPES_METADATA) ?? []),
      failures: either<ErrorDefinition[]>(FAILURES_METADATA) ?? [],
      deprecation: reflector.get<Deprecation | undefined>(DEPRECATION_METADATA, handler),
      stability: reflector.get<StabilityLevel | undefined>(STABILITY_METADATA, handler),
      isIdempotent,
    };
  });
}

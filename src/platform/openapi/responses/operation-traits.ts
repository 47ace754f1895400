import type { Type } from '@nestjs/common';
import { HTTP_CODE_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type Reflector } from '@nestjs/core';
import { PUBLIC_METADATA } from '../../auth/public.decorator.js';
import { REQUIRED_SCOPES_METADATA } from '../../auth/require-scopes.decorator.js';
import type { ErrorDefinition } from '../../errors/error-catalogue.js';
import { IDEMPOTENT_METADATA } from '../../idempotency/idempotent.decorator.js';
import { type Deprecation, DEPRECATION_METADATA } from '../../deprecation/deprecation.js';
import { STABILITY_METADATA, type StabilityLevel } from '../../deprecation/stability.decorator.js';
import { FAILURES_METADATA } from './fails-with.decorator.js';

/** What the decorators of a handler declare and @nestjs/swagger does not read. */
export interface OperationTraits {
  /** The handler's name. It becomes the operationId. */
  readonly name: string;
  /** The status that `@HttpCode` declares; undefined for Nest's default. */
  readonly httpCode: number | undefined;
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
  readonly failures: readonly ErrorDefinition[];
  readonly deprecation: Deprecation | undefined;
  readonly stability: StabilityLevel | undefined;
  /** Whether the handler takes an `Idempotency-Key`. */
  readonly isIdempotent: boolean;
}

/**
 * The traits of every method of a controller.
 *
 * @throws Error when a public handler has `@Idempotent()`
 */
export function readTraits(reflector: Reflector, controller: Type): OperationTraits[] {
  const prototype = controller.prototype as Record<string, () => unknown>;
  return new MetadataScanner().getAllMethodNames(prototype).map((name) => {
    const handler = prototype[name] as () => unknown;
    // The handler's decorator wins over the controller's, as in the guard.
    const either = <T>(key: string): T | undefined =>
      reflector.getAllAndOverride<T | undefined>(key, [handler, controller]);
    const isPublic = either<boolean>(PUBLIC_METADATA) ?? false;
    const isIdempotent = reflector.get<boolean | undefined>(IDEMPOTENT_METADATA, handler) ?? false;
    if (isPublic && isIdempotent) {
      throw new Error(`${controller.name}.${name} cannot be @Public() and @Idempotent(): a key belongs to a client.`);
    }
    return {
      name,
      httpCode: reflector.get<number | undefined>(HTTP_CODE_METADATA, handler),
      isPublic,
      scopes: isPublic ? [] : (either<string[]>(REQUIRED_SCOPES_METADATA) ?? []),
      failures: either<ErrorDefinition[]>(FAILURES_METADATA) ?? [],
      deprecation: reflector.get<Deprecation | undefined>(DEPRECATION_METADATA, handler),
      stability: reflector.get<StabilityLevel | undefined>(STABILITY_METADATA, handler),
      isIdempotent,
    };
  });
}

import { type ExecutionContext, Injectable } from '@nestjs/common';
import { DirectInterceptor } from '#internals';
import { product } from '#settings';

/** The Reflect metadata keys of a handler's Deprecation and stability. */
export const DEPRECATION_METADATA = 'platform:deprecation';
export const STABILITY_METADATA = 'platform:stability';

/** The announced end of an operation. */
export interface Deprecation {
  /** The time from which clients should no longer use the operation. */
  readonly since: Date;
  /** The time from which the operation may be removed. */
  readonly sunset: Date;
  /** The path below the version segment to call instead, such as `/orders`. */
  readonly successor: string;
  /** One sentence for the documents that says what clients should call instead. */
  readonly replacement: string;
}

/** The message of the 410 after the sunset. */
export function removalMessage({ sunset, replacement }: Deprecation): string {
  return `This operation was removed on ${sunset.toISOString().slice(0, 10)}. ${replacement}`;
}

/** The header field of `@Stability`. */
export function stabilityField(): string {
  return product().name.replace(/^./, (letter) => letter.toUpperCase()) + '-Stability';
}

/** The application's interceptor of handlers with `@Deprecated` or `@Stability`. */
export abstract class Deprecations extends DirectInterceptor {
  /** @throws ApiError OPERATION_REMOVED from the sunset of a handler on, if it has one and AFTER_SUNSET is not `serve` */
  abstract refuseRemoved(execution: ExecutionContext): unknown;
}

/**
 * Calls the application's interceptor where a decorator asks for it. A global interceptor would make Nest begin every
 * event stream before its handler has decided.
 */
@Injectable()
export class DecoratedInterceptor extends DirectInterceptor {
  constructor(private readonly deprecations: Deprecations) {
    super();
  }

  override before(execution: ExecutionContext): void {
    this.deprecations.before(execution);
  }
}

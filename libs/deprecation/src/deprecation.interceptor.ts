import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { DirectInterceptor } from '#internals';
import { product } from '#settings';
import { DEPRECATION_METADATA, Deprecations } from './deprecations.js';

export const STABILITY_METADATA = 'platform:stability';

/** The header field of `@Stability`. */
export function stabilityField(): string {
  return product().name.replace(/^./, (letter) => letter.toUpperCase()) + '-Stability';
}

/**
 * Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to every response of a handler with `@Deprecated`, and answers
 * 410 `operation_removed` from the sunset on. Adds `<Product>-Stability` to those of a handler with `@Stability`.
 */
@Injectable()
export class DeprecationInterceptor extends DirectInterceptor {
  constructor(private readonly deprecations: Deprecations) {
    super();
  }

  override before(execution: ExecutionContext): void {
    const response = execution.getArgByIndex<Response>(1);
    const handler = execution.getHandler();
    const stability = Reflect.getMetadata(STABILITY_METADATA, handler) as string | undefined;
    if (stability !== undefined) response.setHeader(stabilityField(), stability);
    if (!Reflect.hasMetadata(DEPRECATION_METADATA, handler)) return;
    this.deprecations.refuseRemoved(execution);
    const { headers } = this.deprecations.of(execution);
    response.setHeader('Deprecation', headers.Deprecation);
    response.setHeader('Sunset', headers.Sunset);
    // Not `setHeader`: a guard or @Header may have set links of its own.
    response.appendHeader('Link', headers.Link);
  }
}

import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { DEPRECATION_METADATA, Deprecations } from '#deprecation';
import { DirectInterceptor } from '#internals';

/**
 * Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to every response of a handler with `@Deprecated`, and answers
 * 410 `operation_removed` from the sunset on.
 */
@Injectable()
export class DeprecationInterceptor extends DirectInterceptor {
  constructor(private readonly deprecations: Deprecations) {
    super();
  }

  override appliesTo(handler: object): boolean {
    return Reflect.hasMetadata(DEPRECATION_METADATA, handler);
  }

  override before(execution: ExecutionContext): void {
    this.deprecations.refuseRemoved(execution);
    const { headers } = this.deprecations.of(execution);
    const response = execution.getArgByIndex<Response>(1);
    response.setHeader('Deprecation', headers.Deprecation);
    response.setHeader('Sunset', headers.Sunset);
    // Not `setHeader`: a guard or @Header may have set links of its own.
    response.appendHeader('Link', headers.Link);
  }
}

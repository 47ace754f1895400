import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { DirectInterceptor } from '#internals';
import { OperationRegistry } from './operation-registry.js';

/**
 * Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to every response of a handler with `@Deprecated`, and
 * `<Product>-Stability` to those of a handler with `@Stability`. Runs after the guards, on these handlers alone: a global
 * interceptor would make Nest begin every event stream before its handler has decided.
 */
@Injectable()
export class DeprecationInterceptor extends DirectInterceptor {
  constructor(private readonly operations: OperationRegistry) {
    super();
  }

  override before(execution: ExecutionContext): void {
    const operation = this.operations.of(execution.getClass(), execution.getHandler());
    // A handler of another transport has no header fields.
    if (operation === undefined) return;
    const response = execution.getArgByIndex<Response>(1);
    for (const name in operation.fields) {
      const value = operation.fields[name] as string;
      // A guard or @Header may have set links of its own.
      if (name === 'Link') response.appendHeader(name, value);
      else response.setHeader(name, value);
    }
  }
}

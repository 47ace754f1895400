import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { map, type Observable } from 'rxjs';

/**
 * An interceptor that needs no observable. Nest calls it like any other interceptor; `callHandlersDirectly` lets it call
 * `before` and `after` directly. A subclass that overrides `intercept` is an ordinary interceptor.
 */
export abstract class DirectInterceptor implements NestInterceptor {
  /** Runs after the guards and before the pipes. May throw. */
  before(_context: ExecutionContext): void {}

  /** Returns the response for what the handler, or an inner interceptor, has returned. Not called after an error. */
  after(result: unknown, _context: ExecutionContext): unknown {
    return result;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    this.before(context);
    return next.handle().pipe(map((result) => this.after(result, context)));
  }
}

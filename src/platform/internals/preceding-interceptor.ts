import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';

/**
 * An interceptor that acts only before the handler and does not change its result or errors. Nest calls it like any other
 * interceptor; the fast path `handler-calls` calls `precede` without an observable. A subclass that overrides `intercept` is
 * an ordinary interceptor.
 */
export abstract class PrecedingInterceptor implements NestInterceptor {
  /** Runs after the guards and before the pipes. May throw; must be synchronous. */
  abstract precede(context: ExecutionContext): void;

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    this.precede(context);
    return next.handle();
  }
}

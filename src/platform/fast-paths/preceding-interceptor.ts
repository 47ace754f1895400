import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';

/**
 * An interceptor that acts before the handler and leaves the handler's result and errors as they are. Nest calls it like any
 * other interceptor; the fast path `handler-calls` calls `precede` without the observable around it. A subclass that
 * overrides `intercept` is an ordinary interceptor.
 */
export abstract class PrecedingInterceptor implements NestInterceptor {
  /** Runs after the guards and before the pipes. May throw; must be synchronous. */
  abstract precede(context: ExecutionContext): void;

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    this.precede(context);
    return next.handle();
  }
}

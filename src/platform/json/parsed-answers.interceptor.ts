import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import { JsonBody } from './json-body.js';

/**
 * Gives the interceptors around it the value of a `JsonBody` instead of its text, so that an interceptor of all modules,
 * such as ClassSerializerInterceptor, finds objects whatever a handler returns. Integers beyond 2^53 are bigints.
 */
export class ParsedAnswersInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((answer: unknown) => (answer instanceof JsonBody ? answer.toJSON() : answer)));
  }
}

import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import { JsonBody } from './json-body.js';

/**
 * Replaces a `JsonBody` by its parsed value, so that global interceptors such as ClassSerializerInterceptor see objects.
 * Integers beyond 2^53 are bigints.
 */
export class ParsedAnswersInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((answer: unknown) => (answer instanceof JsonBody ? answer.toJSON() : answer)));
  }
}

import { applyDecorators, type ExecutionContext, Injectable, UseInterceptors } from '@nestjs/common';
import type { Request } from 'express';
import { ApiError, FailsWith, INVALID_PARAMETER } from '#errors';
import { DirectInterceptor } from '#internals';
import { queryFaults } from './input.pipe.js';

@Injectable()
class NoQueryInterceptor extends DirectInterceptor {
  override before(execution: ExecutionContext): void {
    const request = execution.getArgByIndex<Request>(0);
    if (!request.originalUrl.includes('?')) return;
    const faults = queryFaults(request.query, []);
    if (faults.length > 0) throw new ApiError(INVALID_PARAMETER, faults.join('; '));
  }
}

/**
 * Refuses every query parameter, with 400 `invalid_parameter`, before the input is checked; a query that nobody reads is
 * ignored otherwise, as in Nest. For operations that change something: a client that sends `?dry_run=true` must not believe
 * that it was heeded.
 *
 * @example `@Post() @NoQuery() createOrder(@Body() order: NewOrder): Promise<Order>`
 */
export function NoQuery(): MethodDecorator {
  return applyDecorators(FailsWith(INVALID_PARAMETER), UseInterceptors(NoQueryInterceptor));
}

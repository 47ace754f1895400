import { HttpException } from '@nestjs/common';
import { ApiError } from './api-error.js';
import { TOOK_TOO_LONG } from './error-catalogue.js';
import { fromHttpErrors, fromHttpException, httpError } from './http-exception.js';

/** The ApiError to send for anything that was thrown. */
export function toApiError(exception: unknown): ApiError {
  if (exception instanceof ApiError) return exception;
  // PostgreSQL has cancelled a statement. Not 503 or 504, which clients repeat by themselves.
  if (exception instanceof Error && 'code' in exception && exception.code === '57014') {
    const options = { cause: exception, unavailableCause: 'database_slow' } as const;
    return new ApiError(TOOK_TOO_LONG, TOOK_TOO_LONG.message, {}, options);
  }
  const known = exception instanceof HttpException ? fromHttpException(exception) : fromHttpErrors(exception);
  return known ?? httpError(500, '', { cause: exception });
}

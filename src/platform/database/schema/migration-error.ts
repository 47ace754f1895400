import { ApiError } from '../../errors/api-error.js';

/** The error behind an ApiError: that of PostgreSQL says more than the one that clients get. */
export function originalError(error: unknown): Error {
  return (error instanceof ApiError ? error.cause : error) as Error;
}

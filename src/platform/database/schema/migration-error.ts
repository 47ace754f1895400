import { ApiError } from '../../errors/api-error.js';

/** The error of PostgreSQL behind an ApiError; for operators it says more than the answer for clients. */
export function originalError(error: unknown): Error {
  return (error instanceof ApiError ? error.cause : error) as Error;
}

import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';

/** What is said to a request that finds too many others waiting for the database. */
export function tooManyWaiting(): ApiError {
  return new ApiError(UNAVAILABLE, 'The service has more requests than it can answer. Try again.', {
    'Retry-After': '1',
  });
}

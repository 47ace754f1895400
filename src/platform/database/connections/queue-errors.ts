import { ApiError } from '../../errors/api-error.js';
import { UNAVAILABLE } from '../../errors/error-catalogue.js';

/** What is said to a request that finds too many others waiting for the database. */
export function tooManyWaiting(): ApiError {
  return new ApiError(UNAVAILABLE, 'The service has more requests than it can answer. Try again.', {
    'Retry-After': '1',
  });
}

/** What is said to a request whose turn has not come in time. Nothing was done for it. */
export function waitedTooLong(): ApiError {
  return new ApiError(UNAVAILABLE, 'The service did not get to the request in time. Try again.', {
    'Retry-After': '1',
  });
}

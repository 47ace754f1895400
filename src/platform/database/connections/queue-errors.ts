import { ApiError } from '../../errors/api-error.js';
import { UNAVAILABLE } from '../../errors/error-catalogue.js';

/** The error of a request when too many others already wait for the database. */
export function tooManyWaiting(): ApiError {
  return new ApiError(UNAVAILABLE, UNAVAILABLE.message, { 'Retry-After': '1' });
}

/** The error of a request that has waited too long for the database. No statement was sent for it. */
export function waitedTooLong(): ApiError {
  return new ApiError(UNAVAILABLE, 'The service did not get to the request in time. Try again.', {
    'Retry-After': '1',
  });
}

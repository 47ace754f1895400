import type { ApiError } from '../../errors/api-error.js';
import { serviceUnavailable } from '../../errors/service-unavailable.js';

/** The error of a request when too many others already wait for the database. */
export function tooManyWaiting(): ApiError {
  return serviceUnavailable('database_busy');
}

/** The error of a request that has waited too long for the database. No statement was sent for it. */
export function waitedTooLong(): ApiError {
  return serviceUnavailable('database_busy', 'The service did not get to the request in time. Try again.');
}

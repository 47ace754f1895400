import { ApiError, type ApiErrorOptions } from './api-error.js';
import { UNAVAILABLE } from './error-catalogue.js';

/**
 * Why a request is answered 503, or 500 `took_too_long`: a label of the metric `http_unavailable_total` and a member of the
 * request's log line.
 * `docs/runbook.md` explains each one.
 */
export type UnavailableCause =
  | 'requests_in_flight'
  | 'bodies'
  | 'draining'
  | 'database_away'
  | 'database_refused'
  | 'database_slow'
  | 'database_busy'
  | 'schema'
  | 'check'
  | 'unsettled'
  | 'process_group';

/** The 503 of a request. The cause is for operators; the client does not get it. */
export function serviceUnavailable(
  unavailableCause: UnavailableCause,
  message = UNAVAILABLE.message,
  options: ApiErrorOptions = {},
): ApiError {
  // Also for answers before Express, which `Replies.beforeHead` does not see without the fast paths.
  return new ApiError(UNAVAILABLE, message, { 'Retry-After': '1' }, { ...options, unavailableCause });
}

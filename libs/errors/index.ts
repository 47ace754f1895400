export { ApiError, ErrorBody, RequestAbortedError, StartupError } from './src/api-error.js';
// eslint-disable-next-line no-restricted-syntax -- the whole catalogue is public
export * from './src/error-catalogue.js';
export { toApiError } from './src/http-exception.js';
export { serviceUnavailable, type UnavailableCause } from './src/service-unavailable.js';

export {
  ApiError,
  DeclaredErrors,
  ErrorBody,
  type Fault,
  faultyInput,
  type HeaderFields,
  RequestAbortedError,
  serviceUnavailable,
  type UnavailableCause,
  waitedTooLong,
} from './src/api-error.js';
// eslint-disable-next-line no-restricted-syntax -- the whole catalogue is public
export * from './src/error-catalogue.js';
export { toApiError } from './src/to-api-error.js';
export { UNSTORABLE, unstorableIn } from './src/unstorable.js';
export { withErrorBody } from './src/unreadable-file.js';

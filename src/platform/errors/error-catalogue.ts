/** A kind of error that clients can get: `code` and `status` of the Error body, and a description for the documents. */
export interface ErrorDefinition {
  /** Machine-readable, in lower snake case. Must never change once it is published. */
  readonly code: string;
  /** The HTTP status code (RFC 9110), sent in the status line and in the body. */
  readonly status: number;
  /** One sentence for the documents: when the error is sent. */
  readonly description: string;
}

const catalogue = new Map<string, ErrorDefinition>();

/**
 * Adds a kind of error to the catalogue, from which the documents are made. Features define their own errors beside the
 * service that throws them.
 *
 * @throws Error at import time when the code is taken or not in lower snake case
 */
export function defineError(code: string, status: number, description: string): ErrorDefinition {
  if (!/^[a-z]+(_[a-z]+)*$/.test(code)) {
    throw new Error(`The error code '${code}' is not in lower snake case.`);
  }
  if (catalogue.has(code)) {
    throw new Error(`The error code '${code}' is defined twice.`);
  }
  const definition = Object.freeze({ code, status, description });
  catalogue.set(code, definition);
  return definition;
}

/** All errors defined so far, sorted by status and code. */
export function errorCatalogue(): ErrorDefinition[] {
  return [...catalogue.values()].sort((a, b) => a.status - b.status || (a.code < b.code ? -1 : 1));
}

// The errors of the platform.
export const MALFORMED_JSON = defineError(
  'malformed_json',
  400,
  'The body is not UTF-8, not JSON (RFC 8259), names a member twice or nests too deeply.',
);
export const MISSING_BODY = defineError('missing_body', 400, 'The operation needs a body and none was sent.');
export const VALIDATION_FAILED = defineError(
  'validation_failed',
  400,
  'The body lacks a required member or a value is invalid; the message lists every fault.',
);
export const INVALID_PARAMETER = defineError(
  'invalid_parameter',
  400,
  'A query parameter is invalid, unknown or given twice; the message names it.',
);
export const INVALID_CURSOR = defineError(
  'invalid_cursor',
  400,
  'The cursor was not issued by this service, or for another filter; start again from the first page.',
);
export const INVALID_IDEMPOTENCY_KEY = defineError(
  'invalid_idempotency_key',
  400,
  'The Idempotency-Key is empty, longer than 255 characters, not printable ASCII, wrongly quoted or given twice.',
);
export const BAD_REQUEST = defineError('bad_request', 400, 'The request is not valid HTTP.');
export const MISSING_API_KEY = defineError(
  'missing_api_key',
  401,
  'No usable API key was sent in the Authorization header.',
);
export const INVALID_API_KEY = defineError('invalid_api_key', 401, 'The API key is not known.');
export const EXPIRED_API_KEY = defineError('expired_api_key', 401, 'The API key has expired.');
export const REVOKED_API_KEY = defineError('revoked_api_key', 401, 'The API key was revoked.');
export const INSUFFICIENT_SCOPE = defineError(
  'insufficient_scope',
  403,
  'The API key lacks a scope that the operation needs.',
);
export const ROUTE_NOT_FOUND = defineError('route_not_found', 404, 'No resource has this path.');
export const METHOD_NOT_ALLOWED = defineError(
  'method_not_allowed',
  405,
  'The resource does not support the method; Allow lists those it does.',
);
export const REQUEST_TIMEOUT = defineError('request_timeout', 408, 'The request did not arrive in time.');
export const OPERATION_REMOVED = defineError(
  'operation_removed',
  410,
  'The deprecated operation has been removed; Link names its successor.',
);
export const BODY_TOO_LARGE = defineError('body_too_large', 413, 'The body is larger than the limit.');
export const URI_TOO_LONG = defineError('uri_too_long', 414, 'The request target is longer than the limit.');
export const UNSUPPORTED_MEDIA_TYPE = defineError(
  'unsupported_media_type',
  415,
  'The body is not application/json, or is encoded in another charset than UTF-8 or with a content coding.',
);
export const EXPECTATION_FAILED = defineError('expectation_failed', 417, 'Expect names something unknown.');
export const IDEMPOTENCY_KEY_REUSED = defineError(
  'idempotency_key_reused',
  422,
  'The Idempotency-Key was sent before with another request; a new request needs a new key.',
);
export const RATE_LIMITED = defineError(
  'rate_limited',
  429,
  'The client has called more often than its rate limit allows; Retry-After says when to try again.',
);
export const HEADERS_TOO_LARGE = defineError('headers_too_large', 431, 'The header fields are larger than the limit.');
export const INTERNAL_ERROR = defineError('internal_error', 500, 'The service failed; the request id finds the cause.');
export const UNAVAILABLE = defineError(
  'unavailable',
  503,
  'The service cannot answer at the moment; Retry-After says when to try again.',
);

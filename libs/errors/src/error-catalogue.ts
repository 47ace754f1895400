import { SetMetadata } from '@nestjs/common';

/** Longest code in characters. */
export const MAX_CODE_LENGTH = 64;

/** The form of a code: lower snake case. */
export const CODE_PATTERN = '^[a-z]+(_[a-z]+)*$';

/** A kind of error that clients can get: `code` and `status` of the Error body, and texts for the documents. */
export interface ErrorDefinition {
  /** Machine-readable, in lower snake case, 1 to 64 characters. Must never change once it is published. */
  readonly code: string;
  /** The HTTP status code (RFC 9110), sent in the status line and in the body. */
  readonly status: number;
  /** One sentence for the document: when the error is sent. */
  readonly description: string;
  /** The message of the Error body, and the example in the document. An ApiError may have another message. */
  readonly message: string;
}

const catalogue = new Map<string, ErrorDefinition>();

/**
 * Adds a kind of error to the catalogue and the document. Features define theirs beside the service that throws them.
 *
 * @example const VISITS_FULL = defineError('visits_full', 409, 'No further visit is possible.');
 * @param message the message of an ApiError without one, and the example in the document
 * @throws Error at import time when the code is taken, too long or not in lower snake case
 */
export function defineError(
  code: string,
  status: number,
  description: string,
  message: string = description,
): ErrorDefinition {
  if (!new RegExp(CODE_PATTERN).test(code) || code.length > MAX_CODE_LENGTH) {
    throw new Error(`The error code '${code}' is not in lower snake case with ${MAX_CODE_LENGTH} characters at most.`);
  }
  if (catalogue.has(code)) throw new Error(`The error code '${code}' is defined twice.`);
  const definition = Object.freeze({ code, status, description, message });
  catalogue.set(code, definition);
  return definition;
}

/** The Reflect metadata key of the errors that a handler throws. */
export const FAILURES_METADATA = 'platform:failures';

/**
 * Documents errors that the handler throws, beside those of its other decorators. Those of the platform (401, 403, 413, 429, 500 …) are documented without it.
 *
 * @example `@Post() @FailsWith(VISITS_FULL) recordVisit(@Body() visit: NewVisit): Promise<Visit>`
 */
export function FailsWith(...errors: [ErrorDefinition, ...ErrorDefinition[]]): MethodDecorator {
  return (prototype, name, descriptor) => {
    const others = (Reflect.getMetadata(FAILURES_METADATA, descriptor.value as object) ?? []) as ErrorDefinition[];
    SetMetadata(FAILURES_METADATA, [...new Set([...errors, ...others])])(prototype, name, descriptor);
  };
}

/** Errors for whatever is thrown with no more than a status, such as Nest's exceptions, by status. */
export const GENERAL_ERRORS = new Map<number, ErrorDefinition>();

function defineGeneral(...definition: Parameters<typeof defineError>): ErrorDefinition {
  const error = defineError(...definition);
  GENERAL_ERRORS.set(error.status, error);
  return error;
}

/** All errors defined so far, sorted by status and code. */
export function errorCatalogue(): ErrorDefinition[] {
  return [...catalogue.values()].sort((a, b) => a.status - b.status || (a.code < b.code ? -1 : 1));
}

// The errors of the platform. Messages that depend on the request are made where the error is thrown: those of
// `validation_failed` and `invalid_parameter` in `libs/input`.
export const MALFORMED_JSON = defineError(
  'malformed_json',
  400,
  'The body is not UTF-8, not JSON (RFC 8259), or names a member twice.',
  'The body is not valid JSON: a member is named twice (character 15).',
);
export const BODY_TOO_COMPLEX = defineError(
  'body_too_complex',
  400,
  'The body nests too deeply, or has too many values and member names; the message names the limit.',
  'The body has more than 11000 values and member names (objects and long numbers count twice, ' +
    'numbers with an exponent three times).',
);
export const MISSING_BODY = defineError(
  'missing_body',
  400,
  'The operation needs a body and none was sent.',
  'The operation needs a JSON object as its body and none was sent.',
);
export const VALIDATION_FAILED = defineError(
  'validation_failed',
  400,
  'The body lacks a required member or a value is invalid; the message lists every fault.',
  'name is required',
);
export const INVALID_PARAMETER = defineError(
  'invalid_parameter',
  400,
  'A query parameter is invalid, unknown or given twice; the message names it.',
  'limit must be an integer between 1 and 100',
);
export const INVALID_CURSOR = defineError(
  'invalid_cursor',
  400,
  'The cursor was not issued by this service, or for another filter; start again from the first page.',
  'cursor must be taken unchanged from the Link of a page of this list',
);
export const INVALID_IDEMPOTENCY_KEY = defineError(
  'invalid_idempotency_key',
  400,
  'The Idempotency-Key is empty, longer than 255 characters, not printable ASCII, wrongly quoted or given twice.',
  'Idempotency-Key must be sent once, with 1 to 255 characters of printable ASCII, such as ' +
    '"8e03978e-40d5-43dd-bc93-6894a57f9324"; inside quotes, escape " and \\ with a backslash',
);
export const BAD_REQUEST = defineGeneral(
  'bad_request',
  400,
  'The request is not valid HTTP, or not what is expected here.',
  'The request is not valid HTTP/1.1.',
);
// For statuses without a general error. Clients treat an unknown status as the 400 or 500 of its class (RFC 9110,
// section 15), so these two have 400 and 500 here.
export const CLIENT_ERROR = defineError(
  'client_error',
  400,
  'The request cannot be carried out, for the reason that the status names: any 4xx without a code of its own.',
);
defineGeneral('unauthorized', 401, 'The credentials are not accepted here.');
export const MISSING_API_KEY = defineError(
  'missing_api_key',
  401,
  'No usable API key was sent in the Authorization header.',
  'This request needs an API key: send one header, Authorization: Bearer <API key>.',
);
export const INVALID_API_KEY = defineError('invalid_api_key', 401, 'The API key is not known.');
export const EXPIRED_API_KEY = defineError('expired_api_key', 401, 'The API key has expired.');
export const REVOKED_API_KEY = defineError('revoked_api_key', 401, 'The API key was revoked.');
export const INSUFFICIENT_SCOPE = defineError(
  'insufficient_scope',
  403,
  'The API key lacks a scope that the operation needs.',
  'The API key lacks the scope metrics:read.',
);
defineGeneral('forbidden', 403, 'The client may not do this.');
defineGeneral('not_found', 404, 'The resource does not exist.');
export const ROUTE_NOT_FOUND = defineError(
  'route_not_found',
  404,
  'No resource has this path.',
  'No resource has the path /v1/unknown',
);
export const METHOD_NOT_ALLOWED = defineGeneral(
  'method_not_allowed',
  405,
  'The resource does not support the method; Allow lists those it does.',
  'DELETE is not supported here; use GET, HEAD, OPTIONS, POST.',
);
defineGeneral('not_acceptable', 406, 'No representation matches the request.');
export const REQUEST_TIMEOUT = defineGeneral('request_timeout', 408, 'The request did not arrive in time.');
defineGeneral('conflict', 409, 'The request conflicts with the state of the resource.');
defineGeneral('gone', 410, 'The resource no longer exists.');
export const OPERATION_REMOVED = defineError(
  'operation_removed',
  410,
  'The deprecated operation has been removed; Link names its successor.',
);
export const PRECONDITION_FAILED = defineGeneral('precondition_failed', 412, 'A condition of the request is not met.');
export const BODY_TOO_LARGE = defineGeneral(
  'body_too_large',
  413,
  'The body is larger than the limit.',
  'The body must not be larger than 65536 bytes.',
);
export const URI_TOO_LONG = defineGeneral(
  'uri_too_long',
  414,
  'The request target is longer than the limit.',
  'The request target must not be longer than 8192 characters.',
);
export const UNSUPPORTED_MEDIA_TYPE = defineGeneral(
  'unsupported_media_type',
  415,
  'The operation does not take the media type, the charset or the content coding of the body; Accept or Accept-Encoding names what it takes.',
  'The body must be sent as Content-Type: application/json.',
);
export const EXPECTATION_FAILED = defineGeneral(
  'expectation_failed',
  417,
  'Expect names something unknown.',
  'Expect may only be 100-continue.',
);
defineGeneral('unprocessable_content', 422, 'The body is valid, but cannot be carried out.');
export const IDEMPOTENCY_KEY_REUSED = defineError(
  'idempotency_key_reused',
  422,
  'This Idempotency-Key was already used for a different request; a new request needs a new key.',
  'This Idempotency-Key was already used for a different request. To send this one as well, use a new key.',
);
export const RATE_LIMITED = defineGeneral(
  'rate_limited',
  429,
  'The client has called more often than its rate limit allows; Retry-After says when to try again.',
  'This client may call 60 times a minute. Try again in 1 s.',
);
export const HEADERS_TOO_LARGE = defineGeneral(
  'headers_too_large',
  431,
  'The header fields are larger than the limit.',
  'The header section must not be larger than 16384 bytes.',
);
export const INTERNAL_ERROR = defineError(
  'internal_error',
  500,
  'The service failed; the request id finds the cause.',
  // Sent with every 500, so it must not reveal the cause.
  'The service failed; quote the X-Request-Id when you report it.',
);
export const TOOK_TOO_LONG = defineError(
  'took_too_long',
  500,
  'A statement of the request needs more time than the database gives it. The same request would take too long again.',
  'The request took too long, and was given up. The same request would take too long again.',
);
export const SERVER_ERROR = defineError(
  'server_error',
  500,
  'The service cannot carry out the request, for the reason that the status names: any 5xx without a code of its own.',
);
defineGeneral('not_implemented', 501, 'The service does not support this.');
defineGeneral('bad_gateway', 502, 'Another service that this request needs has failed.');
export const UNAVAILABLE = defineGeneral(
  'unavailable',
  503,
  'The service cannot respond at the moment; Retry-After says when to try again.',
  'The service has more requests than it can serve. Try again.',
);
defineGeneral('gateway_timeout', 504, 'Another service that this request needs did not respond in time.');

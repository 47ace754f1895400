/** Longest code in characters. */
export const MAX_CODE_LENGTH = 64;

/** The form of a code: lower snake case. */
export const CODE_PATTERN = '^[a-z]+(_[a-z]+)*$';

const CODE = new RegExp(CODE_PATTERN);

/** A kind of error that clients can get: `code` and `status` of the Error body, and texts for the documents. */
export interface ErrorDefinition {
  /** Machine-readable, in lower snake case, 1 to 64 characters. Must never change once it is published. */
  readonly code: string;
  /** The HTTP status code (RFC 9110), sent in the status line and in the body. */
  readonly status: number;
  /** One sentence for the documents: when the error is sent. */
  readonly description: string;
  /** The message of the Error body, and the example in the documents. An ApiError may have another message. */
  readonly message: string;
  /** For the documents: what the client should do. Text between backticks is shown as code. */
  readonly remedy: string;
}

const catalogue = new Map<string, ErrorDefinition>();

/**
 * Adds a kind of error to the catalogue, from which the documents are made. Features define their own errors beside the
 * service that throws them.
 *
 * @param texts `message` is the description by default
 * @throws Error at import time when the code is taken, too long or not in lower snake case
 */
export function defineError(
  code: string,
  status: number,
  description: string,
  texts: Partial<Pick<ErrorDefinition, 'message' | 'remedy'>> = {},
): ErrorDefinition {
  if (!CODE.test(code) || code.length > MAX_CODE_LENGTH) {
    throw new Error(`The error code '${code}' is not in lower snake case with ${MAX_CODE_LENGTH} characters at most.`);
  }
  if (catalogue.has(code)) {
    throw new Error(`The error code '${code}' is defined twice.`);
  }
  const definition = Object.freeze({
    code,
    status,
    description,
    message: description,
    remedy: 'Read the message, which says what is wrong.',
    ...texts,
  });
  catalogue.set(code, definition);
  return definition;
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
// `validation_failed` and `invalid_parameter` in `platform/input`.
export const MALFORMED_JSON = defineError(
  'malformed_json',
  400,
  'The body is not UTF-8, not JSON (RFC 8259), names a member twice, nests too deeply or holds too many values.',
  {
    message: 'The body is not valid JSON: it ends where a value is expected (character 9).',
    remedy: 'Send one JSON value in UTF-8, made by a JSON library.',
  },
);
export const MISSING_BODY = defineError('missing_body', 400, 'The operation needs a body and none was sent.', {
  message: 'The operation needs a JSON object as its body and none was sent.',
  remedy: 'Send the body with the request, as `application/json`.',
});
export const VALIDATION_FAILED = defineError(
  'validation_failed',
  400,
  'The body lacks a required member or a value is invalid; the message lists every fault.',
  {
    message: 'name is required',
    remedy: 'Correct every value that the message names, and send the request again.',
  },
);
export const INVALID_PARAMETER = defineError(
  'invalid_parameter',
  400,
  'A query parameter is invalid, unknown or given twice; the message names it.',
  {
    message: 'limit must be an integer between 1 and 100',
    remedy: 'Correct the parameter that the message names, or leave it out.',
  },
);
export const INVALID_CURSOR = defineError(
  'invalid_cursor',
  400,
  'The cursor was not issued by this service, or for another filter; start again from the first page.',
  {
    message: 'cursor must be taken unchanged from the Link of a page of this list',
    remedy: 'Take the address of the next page from `Link` unchanged, or start again without `cursor`.',
  },
);
export const INVALID_IDEMPOTENCY_KEY = defineError(
  'invalid_idempotency_key',
  400,
  'The Idempotency-Key is empty, longer than 255 characters, not printable ASCII, wrongly quoted or given twice.',
  {
    message:
      'Idempotency-Key must be sent once, with 1 to 255 characters of printable ASCII, such as ' +
      '"8e03978e-40d5-43dd-bc93-6894a57f9324"; in a quoted one, \\ stands before " and \\ alone',
    remedy: 'Send one key of 1 to 255 printable ASCII characters, such as a UUID.',
  },
);
export const BAD_REQUEST = defineGeneral(
  'bad_request',
  400,
  'The request is not valid HTTP, or not what is expected here.',
  {
    message: 'The request is not valid HTTP/1.1.',
    remedy: 'Correct what the message names. A proxy or an HTTP library may have made the fault.',
  },
);
// For statuses without a general error. Clients treat an unknown status as the 400 or 500 of its class (RFC 9110,
// section 15), so these two have 400 and 500 here.
export const CLIENT_ERROR = defineError(
  'client_error',
  400,
  'The request cannot be carried out, for the reason that the status names: any 4xx without a code of its own.',
  {
    remedy: 'Read the status and the message; do not repeat the request unchanged.',
  },
);
defineGeneral('unauthorized', 401, 'The credentials are not accepted here.');
export const MISSING_API_KEY = defineError(
  'missing_api_key',
  401,
  'No usable API key was sent in the Authorization header.',
  {
    message: 'Send an API key as Authorization: Bearer <API_KEY>, once.',
    remedy: 'Send one header field `Authorization: Bearer <API key>`.',
  },
);
export const INVALID_API_KEY = defineError('invalid_api_key', 401, 'The API key is not known.', {
  remedy: 'Compare the key with the one you were given. If it is lost, ask the operators for a new one.',
});
export const EXPIRED_API_KEY = defineError('expired_api_key', 401, 'The API key has expired.', {
  remedy: 'Ask the operators for a new key, and replace the old one.',
});
export const REVOKED_API_KEY = defineError('revoked_api_key', 401, 'The API key was revoked.', {
  remedy: 'Ask the operators for a new key. Do not try the old one again.',
});
export const INSUFFICIENT_SCOPE = defineError(
  'insufficient_scope',
  403,
  'The API key lacks a scope that the operation needs.',
  {
    message: 'The API key lacks the scope metrics:read.',
    remedy: 'Ask the operators for a key with the scope that `WWW-Authenticate` names.',
  },
);
defineGeneral('forbidden', 403, 'The client may not do this.');
defineGeneral('not_found', 404, 'The resource does not exist.');
export const ROUTE_NOT_FOUND = defineError('route_not_found', 404, 'No resource has this path.', {
  message: 'No resource has the path /v1/unknown',
  remedy: 'Compare the path with the document. Paths are case-sensitive and have no slash at the end.',
});
export const METHOD_NOT_ALLOWED = defineGeneral(
  'method_not_allowed',
  405,
  'The resource does not support the method; Allow lists those it does.',
  {
    message: 'DELETE is not supported here; use GET, HEAD, OPTIONS, POST.',
    remedy: 'Use a method that `Allow` lists.',
  },
);
defineGeneral('not_acceptable', 406, 'No representation matches the request.');
export const REQUEST_TIMEOUT = defineGeneral('request_timeout', 408, 'The request did not arrive in time.', {
  remedy: 'Send the whole request without a pause. Repeat it, with the same `Idempotency-Key` if it has one.',
});
defineGeneral('conflict', 409, 'The request conflicts with the state of the resource.');
defineGeneral('gone', 410, 'The resource no longer exists.');
export const OPERATION_REMOVED = defineError(
  'operation_removed',
  410,
  'The deprecated operation has been removed; Link names its successor.',
  {
    remedy: 'Use the operation that `Link` names, and read the page about the deprecation.',
  },
);
export const PRECONDITION_FAILED = defineGeneral('precondition_failed', 412, 'A condition of the request is not met.', {
  remedy: 'Read the resource again, and repeat the request with its new state.',
});
export const BODY_TOO_LARGE = defineGeneral('body_too_large', 413, 'The body is larger than the limit.', {
  message: 'The body must not be larger than 65536 bytes.',
  remedy: 'Send less at once. The message names the limit.',
});
export const URI_TOO_LONG = defineGeneral('uri_too_long', 414, 'The request target is longer than the limit.', {
  message: 'The request target must not be longer than 8192 characters.',
  remedy: 'Shorten the query.',
});
export const UNSUPPORTED_MEDIA_TYPE = defineGeneral(
  'unsupported_media_type',
  415,
  'The operation does not take the media type, the charset or the content coding of the body; Accept names its media types.',
  {
    message: 'The body must be sent as Content-Type: application/json.',
    remedy:
      'Send the body with a `Content-Type` that `Accept` of the answer names, in UTF-8, and without `Content-Encoding`, unless `Accept-Encoding` of the answer names one.',
  },
);
export const EXPECTATION_FAILED = defineGeneral('expectation_failed', 417, 'Expect names something unknown.', {
  message: 'Expect may only be 100-continue.',
  remedy: 'Leave `Expect` out, or send `100-continue`.',
});
defineGeneral('unprocessable_content', 422, 'The body is valid, but cannot be carried out.');
export const IDEMPOTENCY_KEY_REUSED = defineError(
  'idempotency_key_reused',
  422,
  'The Idempotency-Key was sent before with another request; a new request needs a new key.',
  {
    message:
      'The Idempotency-Key was sent before with another request, which was carried out. ' +
      'If this one is to be carried out too, send it with a new key.',
    remedy: 'For a new request, make up a new key. To repeat a request, send it exactly as before.',
  },
);
export const RATE_LIMITED = defineGeneral(
  'rate_limited',
  429,
  'The client has called more often than its rate limit allows; Retry-After says when to try again.',
  {
    message: 'This client may call 60 times a minute. Try again in 1 s.',
    remedy: 'Wait as many seconds as `Retry-After` says; then repeat the request.',
  },
);
export const HEADERS_TOO_LARGE = defineGeneral(
  'headers_too_large',
  431,
  'The header fields are larger than the limit.',
  {
    message: 'The header section must not be larger than 16384 bytes.',
    remedy: 'Send fewer or shorter header fields, such as cookies.',
  },
);
export const INTERNAL_ERROR = defineError(
  'internal_error',
  500,
  'The service failed; the request id finds the cause.',
  {
    // Sent with every 500, so it must not reveal the cause.
    message: 'The service failed to answer; quote the X-Request-Id when you report it.',
    remedy:
      'Tell the operators the `X-Request-Id`. Repeat a request that changes something only with its `Idempotency-Key`.',
  },
);
export const SERVER_ERROR = defineError(
  'server_error',
  500,
  'The service cannot carry out the request, for the reason that the status names: any 5xx without a code of its own.',
  {
    remedy: 'Try again later. If it lasts, tell the operators the `X-Request-Id`.',
  },
);
defineGeneral('not_implemented', 501, 'The service does not support this.');
defineGeneral('bad_gateway', 502, 'Another service that is needed for the answer has failed.');
export const UNAVAILABLE = defineGeneral(
  'unavailable',
  503,
  'The service cannot answer at the moment; Retry-After says when to try again.',
  {
    message: 'The service has more requests than it can answer. Try again.',
    remedy:
      'Wait as many seconds as `Retry-After` says; then repeat the request, with the same `Idempotency-Key` if it has one.',
  },
);
defineGeneral('gateway_timeout', 504, 'Another service that is needed for the answer did not answer in time.');

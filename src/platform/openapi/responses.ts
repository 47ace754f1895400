import type { HeadersObject, OperationObject, ReferenceObject, ResponseObject, ResponsesObject } from '@nestjs/swagger';
import { STATUS_CODES } from 'node:http';
import {
  BAD_REQUEST,
  BODY_TOO_LARGE,
  type ErrorDefinition,
  EXPECTATION_FAILED,
  EXPIRED_API_KEY,
  HEADERS_TOO_LARGE,
  IDEMPOTENCY_KEY_REUSED,
  INSUFFICIENT_SCOPE,
  INTERNAL_ERROR,
  INVALID_API_KEY,
  INVALID_IDEMPOTENCY_KEY,
  INVALID_PARAMETER,
  MALFORMED_JSON,
  METHOD_NOT_ALLOWED,
  MISSING_API_KEY,
  MISSING_BODY,
  OPERATION_REMOVED,
  RATE_LIMITED,
  REQUEST_TIMEOUT,
  REVOKED_API_KEY,
  ROUTE_NOT_FOUND,
  UNAVAILABLE,
  UNSUPPORTED_MEDIA_TYPE,
  URI_TOO_LONG,
  VALIDATION_FAILED,
} from '../errors/error-catalogue.js';
import type { OperationTraits } from './operation-traits.js';

/** Errors of the HTTP server, which a client of a documented operation meets only when it breaks HTTP: `default`. */
const TRANSPORT_ERRORS = [
  BAD_REQUEST,
  ROUTE_NOT_FOUND,
  METHOD_NOT_ALLOWED,
  REQUEST_TIMEOUT,
  URI_TOO_LONG,
  EXPECTATION_FAILED,
  HEADERS_TOO_LARGE,
];

/** Responses that are the same for every operation that has them, by their name among the components. */
const SHARED_RESPONSES: Record<string, { status: number | 'default'; failures: readonly ErrorDefinition[] }> = {
  Unauthorized: { status: 401, failures: [MISSING_API_KEY, INVALID_API_KEY, EXPIRED_API_KEY, REVOKED_API_KEY] },
  Forbidden: { status: 403, failures: [INSUFFICIENT_SCOPE] },
  BodyTooLarge: { status: 413, failures: [BODY_TOO_LARGE] },
  UnsupportedMediaType: { status: 415, failures: [UNSUPPORTED_MEDIA_TYPE] },
  TooManyRequests: { status: 429, failures: [RATE_LIMITED] },
  InternalError: { status: 500, failures: [INTERNAL_ERROR] },
  Unavailable: { status: 503, failures: [UNAVAILABLE] },
  OtherError: { status: 'default', failures: TRANSPORT_ERRORS },
};

/** Header fields of answers behind the rate limit; a client without one gets none. */
const RATE_LIMIT_HEADERS = ['RateLimit-Policy', 'RateLimit'];

/** Header fields of errors, beside those of every response. */
const ERROR_HEADERS: Record<string, string[]> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate', ...RATE_LIMIT_HEADERS],
  413: RATE_LIMIT_HEADERS,
  415: ['Accept', ...RATE_LIMIT_HEADERS],
  429: ['Retry-After', ...RATE_LIMIT_HEADERS],
  500: RATE_LIMIT_HEADERS,
  503: ['Retry-After', ...RATE_LIMIT_HEADERS],
  default: ['Allow'],
};

/** Describes those responses, for the components of the document. */
export function describeSharedResponses(): Record<string, ResponseObject> {
  const shared = Object.entries(SHARED_RESPONSES);
  return Object.fromEntries(shared.map(([name, { status, failures }]) => [name, describeError(status, failures)]));
}

/**
 * All responses of an operation: the successes that its decorators declare, with the header fields that the platform adds,
 * and the errors that follow from what the operation is.
 */
export function describeResponses(
  method: string,
  operation: OperationObject,
  traits: OperationTraits,
): ResponsesObject {
  const described = new Map<number, ResponseObject | ReferenceObject>();
  const failures = failuresOf(operation, traits);
  for (const { status } of failures) {
    described.set(status, describeFailures(status, failures, traits));
  }
  // `default` and ranges such as 4XX are the platform's to describe.
  const declared = Object.entries(operation.responses as Record<string, ResponseObject>).filter(([key]) =>
    /^\d+$/.test(key),
  );
  if (!declared.some(([status]) => Number(status) < 400)) {
    // @nestjs/swagger leaves the success out as soon as an error is declared.
    declared.push([String(traits.httpCode ?? (method === 'post' ? 201 : 200)), { description: '' }]);
  }
  for (const [key, response] of declared) {
    const status = Number(key);
    if (status < 400) {
      described.set(status, describeSuccess(method, status, response, traits));
    } else if (!described.has(status)) {
      described.set(status, { ...describeError(status, []), description: response.description });
    }
  }
  const found = described.get(200);
  if (method === 'get' && found && 'headers' in found) {
    const description = 'Not modified: `If-None-Match` names the current `ETag`. There is no body.';
    described.set(304, { description, headers: found.headers });
  }
  const sorted = [...described].sort(([left], [right]) => left - right);
  return { ...Object.fromEntries(sorted), default: referenceTo('OtherError') };
}

function describeSuccess(
  method: string,
  status: number,
  response: ResponseObject,
  traits: OperationTraits,
): ResponseObject {
  const isRepresentation = method === 'get' && status === 200;
  return {
    description: response.description || `${STATUS_CODES[status]}.`,
    headers: {
      ...headers('X-Request-Id', 'Cache-Control', ...(isRepresentation ? ['ETag', 'Vary'] : [])),
      ...rateLimitHeaders(traits),
      ...deprecationHeaders(traits),
      ...(traits.stability ? headers('Petstore-Stability') : {}),
      ...(traits.isIdempotent ? headers('Idempotent-Replayed') : {}),
      ...response.headers,
    },
    ...(response.content ? { content: response.content } : {}),
  };
}

function describeFailures(
  status: number,
  failures: readonly ErrorDefinition[],
  traits: OperationTraits,
): ResponseObject | ReferenceObject {
  const possible = failures.filter((failure) => failure.status === status);
  const shared = Object.entries(SHARED_RESPONSES).find(([, candidate]) => candidate.status === status);
  if (shared?.[1].failures.length === possible.length) {
    return referenceTo(shared[0]);
  }
  const described = describeError(status, possible);
  return {
    ...described,
    headers: { ...described.headers, ...rateLimitHeaders(traits), ...deprecationHeaders(traits) },
  };
}

function describeError(status: number | 'default', failures: readonly ErrorDefinition[]): ResponseObject {
  const summary = status === 'default' ? 'Any other error; `code` tells which.' : `${STATUS_CODES[status]}.`;
  const codes = failures.map(({ code, description }) => `\`${code}\`: ${description}`);
  const examples = failures.map(({ code }): [string, ReferenceObject] => [
    code,
    { $ref: `#/components/examples/${code}` },
  ]);
  return {
    description: codes.length === 1 ? (codes[0] as string) : [summary, ...codes.map((code) => `- ${code}`)].join('\n'),
    headers: headers('X-Request-Id', 'Cache-Control', ...(ERROR_HEADERS[status] ?? [])),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        ...(examples.length > 0 ? { examples: Object.fromEntries(examples) } : {}),
      },
    },
  };
}

/** Every error that an operation can answer with when the request is valid HTTP. */
function failuresOf({ requestBody, parameters = [] }: OperationObject, traits: OperationTraits): ErrorDefinition[] {
  const hasQuery = parameters.some((parameter) => 'in' in parameter && parameter.in === 'query');
  return [
    ...(hasQuery ? [INVALID_PARAMETER] : []),
    ...(requestBody ? [MALFORMED_JSON, MISSING_BODY, VALIDATION_FAILED, BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE] : []),
    ...(traits.isIdempotent ? [INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED] : []),
    ...(traits.isPublic ? [] : [MISSING_API_KEY, INVALID_API_KEY, EXPIRED_API_KEY, REVOKED_API_KEY, RATE_LIMITED]),
    ...(traits.scopes.length > 0 ? [INSUFFICIENT_SCOPE] : []),
    ...(traits.deprecation ? [OPERATION_REMOVED] : []),
    ...traits.failures,
    INTERNAL_ERROR,
    UNAVAILABLE,
  ];
}

function rateLimitHeaders({ isPublic }: OperationTraits): HeadersObject {
  return isPublic ? {} : headers(...RATE_LIMIT_HEADERS);
}

function deprecationHeaders({ deprecation }: OperationTraits): HeadersObject {
  return deprecation ? headers('Deprecation', 'Sunset', 'Link') : {};
}

function headers(...names: string[]): HeadersObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function referenceTo(response: string): ReferenceObject {
  return { $ref: `#/components/responses/${response}` };
}

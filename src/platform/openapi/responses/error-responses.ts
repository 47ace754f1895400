import type { ExampleObject, OperationObject, ReferenceObject, ResponseObject, SchemaObject } from '@nestjs/swagger';
import { STATUS_CODES } from 'node:http';
import {
  BAD_REQUEST,
  BODY_TOO_LARGE,
  CLIENT_ERROR,
  errorCatalogue,
  type ErrorDefinition,
  EXPIRED_API_KEY,
  IDEMPOTENCY_KEY_REUSED,
  INSUFFICIENT_SCOPE,
  INTERNAL_ERROR,
  INVALID_API_KEY,
  INVALID_IDEMPOTENCY_KEY,
  INVALID_PARAMETER,
  MALFORMED_JSON,
  MISSING_API_KEY,
  MISSING_BODY,
  OPERATION_REMOVED,
  RATE_LIMITED,
  REVOKED_API_KEY,
  ROUTE_NOT_FOUND,
  SERVER_ERROR,
  UNAVAILABLE,
  UNSUPPORTED_MEDIA_TYPE,
  VALIDATION_FAILED,
} from '../../errors/error-catalogue.js';
import { removalMessage } from '../../deprecation/deprecation.js';
import { HTTP_ERRORS } from '../../errors/http-exception.js';
import type { OperationTraits } from './operation-traits.js';
import {
  deprecationHeaders,
  RATE_LIMIT_HEADERS,
  rateLimitHeaders,
  type ResponseHeaderName,
  responseHeaders,
  stabilityHeaders,
} from './response-headers.js';

/**
 * Errors that no operation declares: those for invalid HTTP and unknown paths, and those of Nest's exceptions, which any
 * module may throw. The document lists them as `default`.
 */
const OTHER_ERRORS = errorCatalogue().filter(
  (error) =>
    [ROUTE_NOT_FOUND, CLIENT_ERROR, SERVER_ERROR, ...HTTP_ERRORS].includes(error) &&
    ![BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, RATE_LIMITED, UNAVAILABLE].includes(error),
);

/** A response that several operations share. */
interface SharedResponse {
  readonly status: number | 'default';
  readonly failures: readonly ErrorDefinition[];
}

/** The shared responses, by their names in the document's components. */
const SHARED_RESPONSES: Readonly<Record<string, SharedResponse>> = {
  Unauthorized: { status: 401, failures: [MISSING_API_KEY, INVALID_API_KEY, EXPIRED_API_KEY, REVOKED_API_KEY] },
  Forbidden: { status: 403, failures: [INSUFFICIENT_SCOPE] },
  BodyTooLarge: { status: 413, failures: [BODY_TOO_LARGE] },
  UnsupportedMediaType: { status: 415, failures: [UNSUPPORTED_MEDIA_TYPE] },
  TooManyRequests: { status: 429, failures: [RATE_LIMITED] },
  InternalError: { status: 500, failures: [INTERNAL_ERROR] },
  Unavailable: { status: 503, failures: [UNAVAILABLE] },
  OtherError: { status: 'default', failures: OTHER_ERRORS },
};

/** Header fields of error responses, in addition to those of every response. */
const ERROR_HEADERS: Record<string, ResponseHeaderName[]> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate', ...RATE_LIMIT_HEADERS],
  413: RATE_LIMIT_HEADERS,
  415: ['Accept', ...RATE_LIMIT_HEADERS],
  429: ['Retry-After', ...RATE_LIMIT_HEADERS],
  500: RATE_LIMIT_HEADERS,
  503: ['Retry-After', ...RATE_LIMIT_HEADERS],
  default: ['Allow'],
};

/** The shared responses, for the components of the document. */
export function describeSharedResponses(): Record<string, ResponseObject> {
  const shared = Object.entries(SHARED_RESPONSES);
  return Object.fromEntries(shared.map(([name, { status, failures }]) => [name, describeError(status, failures)]));
}

/** Every error with which an operation can answer a request that is valid HTTP. */
export function failuresOf(
  { requestBody, parameters = [] }: OperationObject,
  traits: OperationTraits,
): ErrorDefinition[] {
  const hasQuery = parameters.some((parameter) => 'in' in parameter && parameter.in === 'query');
  return [
    ...(hasQuery ? [INVALID_PARAMETER] : []),
    ...(requestBody ? failuresOfBody(requestBody) : []),
    ...(traits.isIdempotent ? [INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED] : []),
    ...(traits.isPublic ? [] : [MISSING_API_KEY, INVALID_API_KEY, EXPIRED_API_KEY, REVOKED_API_KEY, RATE_LIMITED]),
    ...(traits.scopes.length > 0 ? [INSUFFICIENT_SCOPE] : []),
    ...(traits.deprecation ? [OPERATION_REMOVED] : []),
    ...traits.failures,
    INTERNAL_ERROR,
    UNAVAILABLE,
  ];
}

/** The errors of a body, by its media types: text and bytes are not parsed and have no members to validate. */
function failuresOfBody(body: NonNullable<OperationObject['requestBody']>): ErrorDefinition[] {
  const types = 'content' in body ? Object.keys(body.content) : [];
  const isParsed = types.some((type) => /json|form|\*/.test(type));
  return [
    ...(types.some((type) => /json|\*/.test(type)) ? [MALFORMED_JSON] : []),
    ...(types.every((type) => type === 'application/json') ? [] : [BAD_REQUEST]),
    MISSING_BODY,
    ...(isParsed ? [VALIDATION_FAILED] : []),
    BODY_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
  ];
}

/**
 * The response for the errors of one status: a reference to the shared response if that lists the same errors.
 *
 * @param failures every error of the operation
 * @param details the schema of their `details`, if they have any
 */
export function describeFailures(
  status: number,
  failures: readonly ErrorDefinition[],
  traits: OperationTraits,
  details?: Schema,
): ResponseObject | ReferenceObject {
  const possible = failures.filter((failure) => failure.status === status);
  const shared = Object.entries(SHARED_RESPONSES).find(([, candidate]) => candidate.status === status);
  if (details === undefined && shared !== undefined && haveSameErrors(shared[1].failures, possible)) {
    return referenceToShared(shared[0]);
  }
  const described = describeError(status, possible, { traits, details });
  return {
    ...described,
    headers: {
      ...described.headers,
      ...rateLimitHeaders(traits),
      ...deprecationHeaders(traits),
      ...stabilityHeaders(traits),
    },
  };
}

function haveSameErrors(left: readonly ErrorDefinition[], right: readonly ErrorDefinition[]): boolean {
  return left.length === right.length && left.every((error) => right.includes(error));
}

type Schema = SchemaObject | ReferenceObject;

/**
 * The response for some errors of one status, with an example of each, and with the schema of their `details` if any.
 */
export function describeError(
  status: number | 'default',
  failures: readonly ErrorDefinition[],
  { traits, details }: { traits?: OperationTraits | undefined; details?: Schema | undefined } = {},
): ResponseObject {
  const error: ReferenceObject = { $ref: '#/components/schemas/Error' };
  const summary = status === 'default' ? 'Any other error; `code` tells which.' : `${STATUS_CODES[status]}.`;
  const codes = failures.map(({ code, description }) => `\`${code}\`: ${description}`);
  const examples = failures.map((error): [string, ExampleObject | ReferenceObject] => [
    error.code,
    // Only the message of OPERATION_REMOVED depends on the operation.
    error === OPERATION_REMOVED && traits?.deprecation
      ? describeErrorExample(error, removalMessage(traits.deprecation))
      : { $ref: `#/components/examples/${error.code}` },
  ]);
  return {
    description: codes.length === 1 ? (codes[0] as string) : [summary, ...codes.map((code) => `- ${code}`)].join('\n'),
    headers: responseHeaders('X-Request-Id', 'Cache-Control', ...(ERROR_HEADERS[status] ?? [])),
    content: {
      'application/json': {
        schema: details === undefined ? error : { allOf: [error, { type: 'object', properties: { details } }] },
        ...(examples.length > 0 ? { examples: Object.fromEntries(examples) } : {}),
      },
    },
  };
}

/** The Error body of an error, as an example. */
export function describeErrorExample(
  { code, status, message }: ErrorDefinition,
  sent: string = message,
): ExampleObject {
  return { summary: code, value: { code, message: sent, status } };
}

/** A reference to a shared response, by its name. */
export function referenceToShared(name: string): ReferenceObject {
  return { $ref: `#/components/responses/${name}` };
}

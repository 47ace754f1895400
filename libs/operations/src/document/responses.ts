import type {
  ExampleObject,
  OperationObject,
  ReferenceObject,
  ResponseObject,
  ResponsesObject,
  SchemaObject,
} from '@nestjs/swagger';
import { STATUS_CODES } from 'node:http';
import {
  BAD_REQUEST,
  BODY_TOO_COMPLEX,
  BODY_TOO_LARGE,
  CLIENT_ERROR,
  errorCatalogue,
  type ErrorDefinition,
  EXPIRED_API_KEY,
  GENERAL_ERRORS,
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
  TOOK_TOO_LONG,
  UNAVAILABLE,
  UNSUPPORTED_MEDIA_TYPE,
  VALIDATION_FAILED,
} from '#errors';
import { type Operation } from '../operation-registry.js';
import { removalMessage } from '../deprecation.js';
import type { DocumentedPart } from '#settings';
import { responseHeaders } from './response-headers.js';

/** What a handler declares, and what the parts add to its responses. */
export type Traits = Operation & DocumentedPart;

const JSON_TYPE = 'application/json';

const KEY_ERRORS = [MISSING_API_KEY, INVALID_API_KEY, EXPIRED_API_KEY, REVOKED_API_KEY];

/**
 * Errors that no operation declares: those for invalid HTTP and unknown paths, and those of Nest's exceptions, which any
 * module may throw. The document lists them as `default`.
 */
const OTHER_ERRORS = errorCatalogue().filter(
  (error) =>
    [ROUTE_NOT_FOUND, CLIENT_ERROR, SERVER_ERROR, ...GENERAL_ERRORS.values()].includes(error) &&
    ![BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, RATE_LIMITED, UNAVAILABLE].includes(error),
);

/** The `details` of handlers with `@FaultDetails()`. */
const FAULTS: SchemaObject = {
  type: 'array',
  description: 'The faults of the input, if the error is about them.',
  items: { $ref: '#/components/schemas/ErrorFault' },
};

/**
 * Error responses that several operations share, by their names in the document's components. Every response of the status has the
 * header fields, in addition to those of all responses.
 */
const SHARED_RESPONSES: Record<number | 'default', { name: string; failures: ErrorDefinition[]; headers: string[] }> = {
  401: { name: 'Unauthorized', failures: KEY_ERRORS, headers: ['WWW-Authenticate'] },
  403: { name: 'Forbidden', failures: [INSUFFICIENT_SCOPE], headers: ['WWW-Authenticate'] },
  413: { name: 'BodyTooLarge', failures: [BODY_TOO_LARGE], headers: [] },
  415: {
    name: 'UnsupportedMediaType',
    failures: [UNSUPPORTED_MEDIA_TYPE],
    headers: ['Accept', 'Accept-Encoding'],
  },
  429: { name: 'TooManyRequests', failures: [RATE_LIMITED], headers: ['Retry-After'] },
  500: { name: 'InternalError', failures: [INTERNAL_ERROR, TOOK_TOO_LONG], headers: [] },
  503: { name: 'Unavailable', failures: [UNAVAILABLE], headers: ['Retry-After'] },
  default: { name: 'OtherError', failures: OTHER_ERRORS, headers: ['Allow'] },
};

/** The shared responses, for the components of the document. Those behind the API key have the header fields of the parts. */
export function describeSharedResponses({ headers }: DocumentedPart): Record<string, ResponseObject | ReferenceObject> {
  return Object.fromEntries(
    Object.entries(SHARED_RESPONSES).map(([status, { name, failures }]) => {
      const isBehindKey = status !== '401' && status !== 'default';
      return [name, describeErrors(status, failures, isBehindKey ? Object.keys(headers) : [])];
    }),
  );
}

/**
 * All responses of an operation: the successes that its decorators declare, with the platform's header fields, and every
 * error of the operation. If a decorator declares a type for an error, it is the type of `details`.
 */
export function describeResponses(method: string, operation: OperationObject, traits: Traits): ResponsesObject {
  const described: Record<number, ResponseObject | ReferenceObject> = {};
  const failures = failuresOf(operation, traits);
  const declared = declaredResponses(operation, traits);
  for (const { status } of failures) {
    const possible = failures.filter((failure) => failure.status === status);
    described[status] = describeErrors(status, possible, headersOf(traits), traits, declared.get(status));
  }
  for (const [status, response] of declared) {
    described[status] ??=
      status < 400
        ? describeSuccess(method, status, response, traits)
        : describeErrors(status, [], headersOf(traits), traits, response);
  }
  const found = described[200];
  if (found !== undefined && 'headers' in found && found.headers?.['ETag'] !== undefined) {
    const description = 'Not modified: `If-None-Match` names the current `ETag`. There is no body.';
    described[304] = { description, headers: found.headers };
  }
  // Objects have their numbers in ascending order.
  return { ...described, default: referenceTo(SHARED_RESPONSES.default) };
}

/**
 * The responses that decorators declare, by status. Without one of a success, `default` or `2XX` is that of the operation's status:
 * `@ApiDefaultResponse`, and `@ApiResponse` without a status. @nestjs/swagger omits the success when an error is declared.
 */
function declaredResponses({ responses }: OperationObject, traits: Traits): Map<number, ResponseObject> {
  const declared = responses as Record<string, ResponseObject>;
  const { default: others, '2XX': successes = others ?? { description: '' } } = declared;
  const known = Object.entries(declared)
    // The platform describes every error, so other ranges are left out.
    .filter(([key]) => /^\d+$/.test(key))
    .map(([key, response]): [number, ResponseObject] => [Number(key), response]);
  const hasSuccess = known.some(([status]) => status < 400);
  return new Map(hasSuccess ? known : [...known, [traits.status, successes]]);
}

function describeSuccess(
  method: string,
  status: number,
  { description, headers, content }: ResponseObject,
  traits: Traits,
): ResponseObject {
  const sent = contentOf(content, traits);
  // Only JSON has an entity tag.
  const isRepresentation =
    method === 'get' && status === 200 && !traits.isStream && (sent === undefined || Object.keys(sent).some(isJson));
  return {
    description: description || `${STATUS_CODES[status]}.`,
    headers: {
      ...responseHeaders('X-Request-Id', 'Cache-Control'),
      ...responseHeaders(...(isRepresentation ? ['ETag', 'Vary'] : []), ...headersOf(traits)),
      ...(traits.isIdempotent ? responseHeaders('Idempotent-Replayed') : {}),
      ...(traits.toSent ? { Link: { $ref: '#/components/headers/NextPage' } } : {}),
      ...headers,
    },
    ...(sent ? { content: sent } : {}),
  };
}

function isJson(type: string): boolean {
  return /json|\*/.test(type);
}

/** The content under the media type that is sent: @nestjs/swagger calls that of texts, bytes and events JSON, too. */
function contentOf(content: ResponseObject['content'], { isStream }: Traits): ResponseObject['content'] {
  const { [JSON_TYPE]: json, ...others } = content ?? {};
  if (json === undefined) return content;
  const { type, format } = (json.schema ?? {}) as SchemaObject;
  const isBytes = format === 'binary';
  const own = type === 'string' && (isBytes ? 'application/octet-stream' : format === undefined && 'text/plain');
  return { [isStream ? 'text/event-stream' : own || JSON_TYPE]: json, ...others };
}

/** Every error with which an operation can answer a request that is valid HTTP. */
function failuresOf({ requestBody, parameters = [] }: OperationObject, traits: Traits): ErrorDefinition[] {
  const hasQuery = parameters.some((parameter) => 'in' in parameter && parameter.in === 'query');
  // A key may have too many event streams open.
  const codes = traits.isStream ? [RATE_LIMITED.code, ...traits.errors] : traits.errors;
  const types = requestBody && 'content' in requestBody ? Object.keys(requestBody.content) : [];
  return [
    ...(hasQuery ? [INVALID_PARAMETER] : []),
    ...(types.some(isJson) ? [MALFORMED_JSON, BODY_TOO_COMPLEX] : []),
    ...(types.every((type) => type === JSON_TYPE) ? [] : [BAD_REQUEST]),
    ...(requestBody ? [MISSING_BODY, VALIDATION_FAILED, BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE] : []),
    ...(traits.isIdempotent ? [INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED] : []),
    ...(traits.isPublic ? [] : [...KEY_ERRORS, ...errorCatalogue().filter(({ code }) => codes.includes(code))]),
    ...(traits.scopes.length > 0 ? [INSUFFICIENT_SCOPE] : []),
    ...(traits.deprecation ? [OPERATION_REMOVED] : []),
    ...traits.failures,
    INTERNAL_ERROR,
    TOOK_TOO_LONG,
    UNAVAILABLE,
  ];
}

/**
 * The response for the errors of one status, with an example of each: for an operation a reference to the shared response, if
 * that lists the same errors.
 *
 * @param added further header fields
 * @param traits those of the operation; undefined for a shared response
 * @param declared the response that a decorator declares. Its type is that of `details`.
 */
function describeErrors(
  status: number | string,
  failures: readonly ErrorDefinition[],
  added: readonly string[],
  traits?: Traits,
  declared?: ResponseObject,
): ResponseObject | ReferenceObject {
  const faults = status === 400 && traits?.sendsFaults ? FAULTS : undefined;
  const details = declared?.content?.['application/json']?.schema ?? faults;
  const shared = SHARED_RESPONSES[status as number];
  const isShared =
    shared?.failures.length === failures.length && failures.every((one) => shared.failures.includes(one));
  if (traits && isShared && details === undefined) return referenceTo(shared);
  const error: ReferenceObject = { $ref: '#/components/schemas/Error' };
  const summary = status === 'default' ? 'Any other error, named by `code`.' : `${STATUS_CODES[status]}.`;
  const codes = failures.map(({ code, description }) => `\`${code}\`: ${description}`);
  const list = codes.length === 1 ? codes : [summary, ...codes.map((code) => `- ${code}`)];
  const examples = failures.map((failure): [string, ExampleObject | ReferenceObject] => [
    failure.code,
    // Only the message of OPERATION_REMOVED depends on the operation.
    failure === OPERATION_REMOVED && traits?.deprecation
      ? describeErrorExample(failure, removalMessage(traits.deprecation))
      : { $ref: `#/components/examples/${failure.code}` },
  ]);
  return {
    description: declared && codes.length === 0 ? declared.description : list.join('\n'),
    headers: responseHeaders('X-Request-Id', 'Cache-Control', ...(shared?.headers ?? []), ...added),
    content: {
      'application/json': {
        schema: details === undefined ? error : { allOf: [error, { type: 'object', properties: { details } }] },
        ...(examples.length > 0 && { examples: Object.fromEntries(examples) }),
      },
    },
  };
}

export function describeErrorExample(
  { code, status, message }: ErrorDefinition,
  sent: string = message,
): ExampleObject {
  return { summary: code, value: { code, message: sent, status } };
}

/** Header fields that the parts and decorators of an operation cause. */
function headersOf({ isPublic, deprecation, headers }: Traits): string[] {
  return [...(isPublic ? [] : Object.keys(headers)), ...(deprecation ? ['Deprecation', 'Sunset', 'Link'] : [])];
}

function referenceTo({ name }: { name: string }): ReferenceObject {
  return { $ref: `#/components/responses/${name}` };
}

import type {
  ComponentsObject,
  ExampleObject,
  HeaderObject,
  HeadersObject,
  ParameterObject,
  PathsObject,
  SchemaObject,
} from '@nestjs/swagger';
import type { Application } from '../application.js';
import { errorCatalogue } from '../errors/error-catalogue.js';
import { IDEMPOTENCY_KEY_HEADER, KEY_PATTERN } from '../idempotency/idempotency-key.js';
import { describeSharedResponses } from './responses.js';

/** The Error of the specification. */
const ERROR: SchemaObject = {
  type: 'object',
  description: 'The body of every response that is an error.',
  required: ['code', 'message', 'status'],
  properties: {
    code: {
      type: 'string',
      description:
        'Machine-readable error code. The codes of an operation are named with its responses; a code that was published ' +
        'keeps its meaning, and new ones may be added, so treat an unknown code by its `status`.',
      examples: ['validation_failed'],
    },
    message: {
      type: 'string',
      description: 'Human-readable description. Meant for people, and may change: do not parse it.',
      examples: ['name is required'],
    },
    status: {
      type: 'integer',
      description: 'The HTTP status code of the response.',
      minimum: 400,
      maximum: 599,
      examples: [400],
    },
  },
};

/** For `headers` of a 201: the address of what was created. */
export const LOCATION_HEADER: HeadersObject = { Location: { $ref: '#/components/headers/Location' } };

/** For `headers` of a list's 200: the address of the next page. */
export const NEXT_PAGE_HEADER: HeadersObject = { Link: { $ref: '#/components/headers/NextPage' } };

/** The parameter of operations with `@Idempotent()`. */
export const IDEMPOTENCY_KEY_PARAMETER: ParameterObject = {
  name: IDEMPOTENCY_KEY_HEADER,
  in: 'header',
  description:
    'Makes it safe to repeat the request: a text that the client makes up for it, such as a UUID, and sends again with every ' +
    'attempt. 1 to 255 characters of printable ASCII, quoted (a string of RFC 9651) or bare. It is kept for 24 hours, for ' +
    'the client that the API key belongs to: until then the same request is answered as the first time, with ' +
    '`Idempotent-Replayed`, and another one with 422. Nothing is kept of a request that was refused ' +
    '(draft-ietf-httpapi-idempotency-key-header).',
  schema: { type: 'string', pattern: KEY_PATTERN, example: '"8e03978e-40d5-43dd-bc93-6894a57f9324"' },
};

/** Header fields of responses, by name. The application has examples of those that name its resources. */
const HEADERS: Record<string, HeaderObject> = {
  'X-Request-Id': {
    description:
      "Identifies the request in the service's log: the one the client sent, if it was well-formed, or a new one.",
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    example: 'sGn7x2Lq0aTzV9bM',
  },
  'Cache-Control': {
    description: '`private, no-cache` with what may be stored and revalidated, `no-store` with everything else.',
    schema: { type: 'string' },
    example: 'private, no-cache',
  },
  ETag: {
    description:
      'Weak entity tag of the body; send it as `If-None-Match` to get 304 while nothing has changed (RFC 9110).',
    required: true,
    schema: { type: 'string' },
    example: 'W/"p2mYq0cT8mW3Zt7cU5Hn6y1b2aE"',
  },
  Vary: {
    description: 'The request header fields that the response depends on (RFC 9110).',
    required: true,
    schema: { type: 'string' },
    example: 'Authorization',
  },
  'WWW-Authenticate': {
    description: 'The challenge: what is wrong with the API key, or which scope it lacks (RFC 6750).',
    required: true,
    schema: { type: 'string' },
    example: 'Bearer realm="petstore"',
  },
  Accept: {
    description: 'The media type that a request body must have (RFC 9110).',
    required: true,
    schema: { type: 'string' },
    example: 'application/json',
  },
  Allow: {
    description: 'With 405: the methods that the resource supports (RFC 9110).',
    schema: { type: 'string' },
    example: 'GET, HEAD, OPTIONS, POST',
  },
  'Retry-After': {
    description: 'How many seconds to wait before the next attempt (RFC 9110).',
    required: true,
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
  'RateLimit-Policy': {
    description:
      'The rate limit of the client, for all of its keys together: `q` requests in `w` seconds. They may come at once, and ' +
      'are given back evenly (draft-ietf-httpapi-ratelimit-headers-10). Absent where there is no limit.',
    schema: { type: 'string' },
    example: '"client";q=6000;w=60',
  },
  RateLimit: {
    description: 'What is left of it: `r` requests now, and all of them again in `t` seconds without any.',
    schema: { type: 'string' },
    example: '"client";r=5999;t=1',
  },
  Deprecation: {
    description: 'Since when the operation is deprecated: `@` and a Unix time in seconds (RFC 9745).',
    schema: { type: 'string', pattern: '^@-?[0-9]+$' },
    example: '@1795132800',
  },
  Sunset: {
    description: 'From when on the operation may be gone: an HTTP date (RFC 8594).',
    schema: { type: 'string' },
    example: 'Thu, 05 Dec 2030 00:00:00 GMT',
  },
  Link: {
    description:
      'The operation to use instead (`successor-version`) and the page about the deprecation (RFC 8288, RFC 9745).',
    schema: { type: 'string' },
  },
  Location: {
    description: 'The address of what was created (RFC 9110).',
    required: true,
    schema: { type: 'string', format: 'uri' },
  },
  'Idempotent-Replayed': {
    description:
      'Sent with an answer that is given again: a request with the same `Idempotency-Key` has been carried out before.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  NextPage: {
    description: 'The next page, as `rel="next"` (RFC 8288). Absent on the last page.',
    schema: { type: 'string' },
  },
  'Petstore-Stability': {
    description: 'How settled the operation is. Operations without it are stable.',
    schema: { type: 'string', enum: ['experimental', 'beta'] },
    example: 'beta',
  },
};

/**
 * The components of a document: the schemas of its features, and what the platform adds. Those that nothing refers to are
 * left out.
 *
 * @param schemas those of the features
 */
export function describeComponents(
  paths: PathsObject,
  schemas: Record<string, SchemaObject>,
  { headerExamples, defaultScopes }: Application,
): ComponentsObject {
  const responses = describeSharedResponses();
  const text = JSON.stringify([paths, schemas, responses]);
  const scopes = defaultScopes.map((scope) => `\`${scope}\``).join(' and ');
  return {
    schemas: referredTo('schemas', { ...schemas, Error: ERROR }, text),
    responses: referredTo('responses', responses, text),
    headers: referredTo('headers', describeHeaders(headerExamples), text),
    examples: referredTo('examples', errorExamples(), text),
    securitySchemes: {
      bearerAuth: {
        type: 'http',
        scheme: 'bearer',
        description:
          'An API key, sent as `Authorization: Bearer <API_KEY>` with every request (RFC 6750). A key carries scopes, such ' +
          `as ${scopes}; each operation names those it needs. Operators of the service issue keys.`,
      },
    },
  };
}

function describeHeaders(examples: Application['headerExamples']): Record<string, HeaderObject> {
  const described = Object.entries(HEADERS).map(([name, header]): [string, HeaderObject] => {
    const example = examples[name];
    return [name, example === undefined ? header : { ...header, example }];
  });
  return Object.fromEntries(described);
}

function errorExamples(): Record<string, ExampleObject> {
  return Object.fromEntries(
    errorCatalogue().map(({ code, status, description }) => [
      code,
      { summary: code, value: { code, message: description, status } },
    ]),
  );
}

function referredTo<T>(kind: string, components: Record<string, T>, text: string): Record<string, T> {
  const isReferredTo = ([name]: [string, T]): boolean => text.includes(`"#/components/${kind}/${name}"`);
  return Object.fromEntries(Object.entries(components).filter(isReferredTo));
}

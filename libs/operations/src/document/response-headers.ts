import type { HeaderObject, HeadersObject } from '@nestjs/swagger';

/**
 * Header fields of responses, by their names in the document's components. The application provides examples for fields that
 * name its resources. The schema is a string unless it is given.
 */
export const RESPONSE_HEADERS = {
  'X-Request-Id': {
    description:
      "Identifies the request in the service's log: the one the client sent, if it was well-formed, or a new one.",
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    example: 'sGn7x2Lq0aTzV9bM',
  },
  'Cache-Control': {
    description: '`private, no-cache` with what may be stored and revalidated, `no-store` with everything else.',
    example: 'private, no-cache',
  },
  ETag: {
    description:
      'Weak entity tag of the body; send it as `If-None-Match` to get 304 while nothing has changed (RFC 9110).',
    required: true,
    example: 'W/"p2mYq0cT8mW3Zt7cU5Hn6y1b2aE"',
  },
  Vary: {
    description: 'The request header fields that the response depends on (RFC 9110).',
    required: true,
    example: 'Authorization',
  },
  'WWW-Authenticate': {
    description: 'The challenge: what is wrong with the API key, or which scope it lacks (RFC 6750).',
    required: true,
    example: 'Bearer realm="service"',
  },
  Accept: {
    description: 'The media type that a request body must have (RFC 9110).',
    required: true,
    example: 'application/json',
  },
  'Accept-Encoding': {
    description: 'The content coding that a request body must have, if it had another one (RFC 9110).',
    example: 'identity',
  },
  Allow: {
    description: 'With 405: the methods that the resource supports (RFC 9110).',
    example: 'GET, HEAD, OPTIONS, POST',
  },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt (RFC 9110).',
    required: true,
    schema: { type: 'integer', format: 'int32', minimum: 0 },
    example: 1,
  },
  Deprecation: {
    description: 'Since when the operation is deprecated: `@` and a Unix time in seconds (RFC 9745).',
    schema: { type: 'string', pattern: '^@-?[0-9]+$' },
    example: '@1795132800',
  },
  Sunset: {
    description: 'From when on the operation may be gone: an HTTP date (RFC 8594).',
    example: 'Thu, 05 Dec 2030 00:00:00 GMT',
  },
  Link: {
    description:
      'The operation to use instead (`successor-version`) and the page about the deprecation (RFC 8288, RFC 9745).',
  },
  Location: {
    description: 'The address of what was created (RFC 9110).',
    required: true,
    schema: { type: 'string', format: 'uri' },
  },
  'Idempotent-Replayed': {
    description:
      'This is the first response again: the request was already carried out with the same `Idempotency-Key`.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  NextPage: {
    description: 'The next page, as `rel="next"` (RFC 8288). Absent on the last page.',
  },
} satisfies Record<string, HeaderObject>;

/** References to header fields, for `headers` of a response. */
export function responseHeaders(...names: string[]): HeadersObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

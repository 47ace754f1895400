import type { OperationObject, ReferenceObject, ResponseObject, ResponsesObject } from '@nestjs/swagger';
import { STATUS_CODES } from 'node:http';
import { describeError, describeFailures, failuresOf, referenceToShared } from './error-responses.js';
import type { OperationTraits } from './operation-traits.js';
import { deprecationHeaders, rateLimitHeaders, responseHeaders, stabilityHeaders } from './response-headers.js';

/**
 * All responses of an operation: the successes that its decorators declare, with the platform's header fields, and every
 * error of the operation. If a decorator declares a type for an error, it is the type of `details`.
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
  for (const [status, response] of declaredResponses(operation, traits)) {
    const details = response.content?.['application/json']?.schema;
    if (status < 400) {
      described.set(status, describeSuccess(method, status, response, traits));
    } else if (!described.has(status)) {
      described.set(status, { ...describeError(status, [], { details }), description: response.description });
    } else if (details !== undefined) {
      described.set(status, describeFailures(status, failures, traits, details));
    }
  }
  const found = described.get(200);
  if (method === 'get' && found && 'headers' in found) {
    const description = 'Not modified: `If-None-Match` names the current `ETag`. There is no body.';
    described.set(304, { description, headers: found.headers });
  }
  const sorted = [...described].sort(([left], [right]) => left - right);
  return { ...Object.fromEntries(sorted), default: referenceToShared('OtherError') };
}

/** The responses that decorators declare, by status. @nestjs/swagger omits the success when an error is declared. */
function declaredResponses({ responses }: OperationObject, traits: OperationTraits): [number, ResponseObject][] {
  const declared = Object.entries(responses as Record<string, ResponseObject>)
    // Ranges such as 4XX and `default` are left out: the platform describes every error.
    .filter(([key]) => /^\d+$/.test(key))
    .map(([key, response]): [number, ResponseObject] => [Number(key), response]);
  const hasSuccess = declared.some(([status]) => status < 400);
  return hasSuccess ? declared : [...declared, [traits.status, { description: '' }]];
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
      ...responseHeaders('X-Request-Id', 'Cache-Control'),
      ...(isRepresentation ? responseHeaders('ETag', 'Vary') : {}),
      ...rateLimitHeaders(traits),
      ...deprecationHeaders(traits),
      ...stabilityHeaders(traits),
      ...(traits.isIdempotent ? responseHeaders('Idempotent-Replayed') : {}),
      ...response.headers,
    },
    ...(response.content ? { content: response.content } : {}),
  };
}

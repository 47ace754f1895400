import type {
  MediaTypeObject,
  OperationObject,
  ParameterObject,
  RequestBodyObject,
  ResponseObject,
} from '@nestjs/swagger';
import { isoDate } from '../deprecation.js';
import { IDEMPOTENCY_KEY_HEADER, KEY_PATTERN, MAX_FIELD_LENGTH } from '../idempotency-key-field.js';
import { type Schema, toJsonSchema } from './json-schema.js';
import { describeResponses, type Traits } from './responses.js';

// Neither has an example, which programs would send as it is with every request.
const IDEMPOTENCY_KEY_PARAMETER: ParameterObject = {
  name: IDEMPOTENCY_KEY_HEADER,
  in: 'header',
  description:
    'Makes the request safe to repeat: choose a unique text, such as a UUID, and send it with every attempt. 1 to 255 ' +
    'characters of printable ASCII, quoted (a string of RFC 9651) or bare. The key is kept for 24 hours, for the client of ' +
    'the API key. Repeats get the first response again, marked `Idempotent-Replayed: true`; a different request with the ' +
    'same key gets 422. A refused request does not use up its key (draft-ietf-httpapi-idempotency-key-header).',
  schema: {
    type: 'string',
    pattern: KEY_PATTERN,
    minLength: 1,
    maxLength: MAX_FIELD_LENGTH,
  },
};

const IF_NONE_MATCH_PARAMETER: ParameterObject = {
  name: 'If-None-Match',
  in: 'header',
  description:
    'The `ETag` of an earlier response, or several: the response is 304 without a body while nothing has changed (RFC 9110).',
  schema: { type: 'string', maxLength: 4096, pattern: '^[ -~]*$' },
};

/** Adds the platform's behaviour to an operation that @nestjs/swagger has found. JSON leaves its undefined members out. */
export function describeOperation(method: string, found: OperationObject, traits: Traits): OperationObject {
  const { scopes, deprecation } = traits;
  const {
    operationId,
    summary,
    description,
    tags,
    parameters: declared = [],
    requestBody,
    responses,
    security,
    ...others
  } = found;
  const described = Object.entries(responses).map(([status, response]): [string, ResponseObject] => [
    status,
    describeContent(response as ResponseObject),
  ]);
  const allResponses = describeResponses(method, { ...found, responses: Object.fromEntries(described) }, traits);
  const own = declared as ParameterObject[];
  const ofPlatform = [
    ...(traits.isIdempotent ? [IDEMPOTENCY_KEY_PARAMETER] : []),
    ...(304 in allResponses ? [IF_NONE_MATCH_PARAMETER] : []),
  ].filter(({ name }) => !own.some((one) => one.in === 'header' && one.name.toLowerCase() === name.toLowerCase()));
  const parameters = [...own, ...ofPlatform];
  const sunset = deprecation && isoDate(deprecation.sunset);
  const paragraphs = [
    description,
    scopes.length > 0 && `Needs the scope ${scopes.map((scope) => `\`${scope}\``).join(' and the scope ')}.`,
    deprecation &&
      `**Deprecated** since ${isoDate(deprecation.since)}, to be removed on ${sunset}. ${deprecation.replacement}`,
  ].filter(Boolean);
  return {
    ...others,
    operationId,
    summary,
    description: paragraphs.join('\n\n') || undefined,
    tags,
    security,
    ...(scopes.length > 0 && { 'x-required-scopes': scopes }),
    ...(deprecation && { deprecated: true, 'x-sunset': sunset, 'x-deprecated-sunset': sunset }),
    parameters: parameters.length > 0 ? parameters.map(describeParameter) : undefined,
    requestBody: requestBody && describeContent(requestBody as RequestBodyObject),
    responses: allResponses,
  };
}

/**
 * Sorts the members of a parameter for readers. Copies the schema's example to a required parameter, because programs send
 * it; not to an optional one, which would change the request.
 */
function describeParameter({ name, in: location, required = false, ...others }: ParameterObject): ParameterObject {
  const { description, ...rest } = withJsonSchema(others);
  const [example] = required ? (((rest.schema as Schema | undefined)?.['examples'] ?? []) as unknown[]) : [];
  return { name, in: location, required, description, example, ...rest };
}

type Content = Record<string, MediaTypeObject>;

function describeContent<T extends { content?: Content }>(described: T): T {
  if (described.content === undefined) return described;
  const media = Object.entries(described.content).map(([type, body]) => [type, withJsonSchema(body)] as const);
  return { ...described, content: Object.fromEntries(media) };
}

function withJsonSchema<T extends { schema?: object }>(described: T): T {
  return described.schema ? { ...described, schema: toJsonSchema({ ...described.schema }) } : described;
}

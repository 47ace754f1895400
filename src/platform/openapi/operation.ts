import type { MediaTypeObject, OperationObject, ParameterObject, ResponseObject } from '@nestjs/swagger';
import { IDEMPOTENCY_KEY_PARAMETER } from './components.js';
import { toJsonSchema } from './json-schema.js';
import type { OperationTraits } from './operation-traits.js';
import { describeResponses } from './responses.js';

/** `x-stability-level` of the levels of `@Stability`. */
const STABILITY_LEVELS = { experimental: 'alpha', beta: 'beta' } as const;

/** The operation that @nestjs/swagger found, with what the platform does for every operation. */
export function describeOperation(method: string, found: OperationObject, traits: OperationTraits): OperationObject {
  const { isPublic, scopes, deprecation, stability } = traits;
  const { summary, description, tags, parameters: declared = [], requestBody, responses, ...others } = found;
  const parameters = [...declared, ...(traits.isIdempotent ? [IDEMPOTENCY_KEY_PARAMETER] : [])];
  const sunset = deprecation && isoDate(deprecation.sunset);
  const paragraphs = [
    description,
    scopes.length > 0 && `Needs the scope ${scopes.map((scope) => `\`${scope}\``).join(' and the scope ')}.`,
    deprecation &&
      `**Deprecated** since ${isoDate(deprecation.since)}, to be removed on ${sunset}. ${deprecation.replacement}`,
    stability && `This operation is ${stability}: its contract may still change.`,
  ].filter(Boolean);
  const described = Object.entries(responses).map(([status, response]): [string, ResponseObject] => [
    status,
    withContentSchemas(response as ResponseObject),
  ]);
  return {
    ...others,
    operationId: traits.name,
    ...(summary !== undefined && { summary }),
    ...(paragraphs.length > 0 && { description: paragraphs.join('\n\n') }),
    ...(tags && { tags }),
    ...(isPublic && { security: [] }),
    ...(scopes.length > 0 && { 'x-required-scopes': scopes }),
    ...(deprecation && { deprecated: true, 'x-sunset': sunset, 'x-deprecated-sunset': sunset }),
    ...(stability && { 'x-stability': stability, 'x-stability-level': STABILITY_LEVELS[stability] }),
    ...(parameters.length > 0 && {
      parameters: parameters.map((parameter) => describeParameter(parameter as ParameterObject)),
    }),
    ...(requestBody && { requestBody: withContentSchemas(requestBody as { content: Content }) }),
    responses: describeResponses(method, { ...found, responses: Object.fromEntries(described) }, traits),
  };
}

function isoDate(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** In the order in which people read. */
function describeParameter({ name, in: location, required = false, ...others }: ParameterObject): ParameterObject {
  const { description, ...rest } = withJsonSchema(others);
  return { name, in: location, required, ...(description !== undefined && { description }), ...rest };
}

type Content = Record<string, MediaTypeObject>;

function withContentSchemas<T extends { content?: Content }>(described: T): T {
  const media = Object.entries(described.content ?? {});
  return media.length > 0
    ? { ...described, content: Object.fromEntries(media.map(([type, body]) => [type, withJsonSchema(body)])) }
    : described;
}

function withJsonSchema<T extends { schema?: object }>(described: T): T {
  return described.schema ? { ...described, schema: toJsonSchema({ ...described.schema }) } : described;
}

import type { ComponentsObject, HeaderObject, PathsObject, SchemaObject } from '@nestjs/swagger';
import { CODE_PATTERN, errorCatalogue, MAX_CODE_LENGTH } from '#errors';
import type { Application, DocumentedPart } from '#settings';
import { describeErrorExample, describeSharedResponses } from './responses.js';
import { RESPONSE_HEADERS } from './response-headers.js';

const message = (example: string): SchemaObject => ({
  type: 'string',
  description: 'Human-readable description. Meant for people, and may change: do not parse it.',
  examples: [example],
});

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
      pattern: CODE_PATTERN,
      maxLength: MAX_CODE_LENGTH,
      examples: ['validation_failed'],
    },
    message: message('name is required'),
    status: {
      type: 'integer',
      format: 'int32',
      description: 'The HTTP status code of the response.',
      minimum: 400,
      maximum: 599,
      examples: [400],
    },
  },
};

const FAULT: SchemaObject = {
  type: 'object',
  description: 'One fault of the input of a request.',
  required: ['property', 'rule', 'message'],
  properties: {
    property: {
      type: 'string',
      description: 'The names of members and indexes of arrays that lead to the value; empty for the whole input.',
      examples: ['lines.0.quantity'],
    },
    rule: {
      type: 'string',
      description:
        'The rule that the value breaks: a keyword of JSON Schema such as `required` or `maxLength`, `storable`, or a name of class-validator.',
      examples: ['maximum'],
    },
    message: message('lines.0.quantity must be an integer between 1 and 99'),
    context: { description: 'What the rule says besides.' },
  },
};

/**
 * The components of the document: schemas, responses, header fields, examples and security schemes. Components without a
 * reference are left out, except the last.
 *
 * @param schemas the schemas of the features
 */
export function describeComponents(
  paths: PathsObject,
  schemas: Record<string, SchemaObject>,
  { headerExamples }: Application,
  added: DocumentedPart,
  securitySchemes: ComponentsObject['securitySchemes'] & object,
): ComponentsObject {
  const responses = referredTo('responses', describeSharedResponses(added), JSON.stringify(paths));
  const headers = Object.entries<HeaderObject>({ ...RESPONSE_HEADERS, ...added.headers }).map(
    ([name, { description, required, schema = { type: 'string' }, example }]) =>
      [name, { description, required, schema, example: headerExamples[name] ?? (example as unknown) }] as const,
  );
  const examples = errorCatalogue().map((error) => [error.code, describeErrorExample(error)] as const);
  const text = JSON.stringify([paths, schemas, responses]);
  return {
    schemas: referredTo('schemas', { ...schemas, Error: ERROR, ErrorFault: FAULT }, text),
    responses,
    headers: referredTo('headers', Object.fromEntries(headers), text),
    examples: referredTo('examples', Object.fromEntries(examples), text),
    securitySchemes,
  };
}

function referredTo<T>(kind: string, components: Record<string, T>, text: string): Record<string, T> {
  const used = Object.entries(components).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`));
  return Object.fromEntries(used);
}

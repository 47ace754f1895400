// Reads the OpenAPI document for the reference: what operations share, and how a schema reads as text.

/** The value that a `$ref` into the document names; any other value is returned as it is. */
export function resolve(document, value) {
  if (typeof value?.$ref !== 'string') return value;
  const { $ref, ...siblings } = value;
  const names = $ref.slice('#/'.length).split('/');
  const target = names.reduce((node, name) => node?.[name.replaceAll('~1', '/').replaceAll('~0', '~')], document);
  return { ...resolve(document, target), ...siblings };
}

/** All operations of the document, with path and method. */
export function operationsOf(document) {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => typeof operation?.responses === 'object')
      .map(([method, operation]) => ({ path, method, operation })),
  );
}

/** The responses of an operation: status, description, header fields by name, and the schema of the JSON body. */
export function responsesOf(document, operation) {
  return Object.entries(operation.responses).map(([status, reference]) => {
    const { description = '', headers = {}, content = {} } = resolve(document, reference);
    const media = content['application/json'];
    return {
      status,
      description,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, header]) => [name, resolve(document, header).description ?? '']),
      ),
      codes: codesOf(document, media),
      schema: media?.schema,
    };
  });
}

/** The error codes that a response may carry: those of its examples. */
function codesOf(document, media) {
  const examples = Object.values(media?.examples ?? {}).map((example) => resolve(document, example).value);
  return [...examples, media?.example].map((example) => example?.code).filter((code) => typeof code === 'string');
}

export function isError({ status }) {
  return status === 'default' || /^[45]/.test(status);
}

/**
 * What all operations share, which the page describes once.
 *
 * @returns header fields of every success with their descriptions, and errors of every operation: status and codes
 */
export function sharedBy(document) {
  const all = operationsOf(document).map(({ operation }) => responsesOf(document, operation));
  const successes = all.flatMap((responses) => responses.filter((response) => !isError(response)));
  const [first, ...others] = successes;
  const headers = Object.entries(first?.headers ?? {}).filter(([name]) =>
    others.every((response) => name in response.headers),
  );
  const keysOf = (responses) => responses.filter(isError).map(errorKey);
  const keys = all.map((responses) => new Set(keysOf(responses)));
  const errors = (all[0] ?? [])
    .filter(isError)
    .filter((response) => keys.every((operation) => operation.has(errorKey(response))));
  return { headers: Object.fromEntries(headers), errors };
}

/** Names an error response by what clients see of it, to compare those of two operations. */
export function errorKey({ status, codes }) {
  return [status, ...codes].join(' ');
}

/** The type of a value and its limits, in words. */
export function typeInWords(document, reference) {
  const schema = resolve(document, reference) ?? {};
  const types = [schema.type].flat().filter((type) => type !== undefined);
  const words = [];
  if (schema.enum) {
    words.push(`one of ${schema.enum.map(String).join(', ')}`);
  } else if (schema.format === 'int64') {
    words.push('64-bit integer');
  } else if (types.includes('array')) {
    words.push(`list of ${nameOf(schema.items) ?? typeInWords(document, schema.items)}`);
    if (schema.maxItems !== undefined) words.push(`at most ${schema.maxItems}`);
  } else {
    words.push(types.join(' or ') || 'any value');
    // The limits of int64 and above are no doubles: as numbers they would be shown rounded.
    const { minimum, maximum, minLength, maxLength } = schema;
    if (Number.isSafeInteger(minimum) && Number.isSafeInteger(maximum)) words.push(`${minimum} to ${maximum}`);
    if (minLength !== undefined && maxLength !== undefined) words.push(`${minLength} to ${maxLength} characters`);
    else if (maxLength !== undefined) words.push(`at most ${maxLength} characters`);
  }
  if (schema.default !== undefined) words.push(`default ${schema.default}`);
  return words.join(', ');
}

/** The name of the schema that a reference names. */
export function nameOf(schema) {
  return typeof schema?.$ref === 'string' ? schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1) : undefined;
}

/** The members of an object, or of the objects in a list: name, type in words, description. */
export function membersOf(document, reference) {
  const schema = resolve(document, reference) ?? {};
  if (schema.items) return membersOf(document, schema.items);
  const parts = (schema.allOf ?? []).flatMap((part) => membersOf(document, part));
  const own = Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    type: typeInWords(document, property),
    description: resolve(document, property)?.description ?? '',
    isRequired: (schema.required ?? []).includes(name),
  }));
  const required = schema.required ?? [];
  return [...parts.filter(({ name }) => !own.some((member) => member.name === name)), ...own].map((member) => ({
    ...member,
    isRequired: member.isRequired || required.includes(member.name),
  }));
}

/** A value that fits a schema, as it is in the examples and defaults of the document. */
export function exampleOf(document, reference) {
  const schema = resolve(document, reference) ?? {};
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.items) return [exampleOf(document, schema.items)];
  const parts = (schema.allOf ?? []).map((part) => exampleOf(document, part));
  const entries = Object.entries(schema.properties ?? {}).map(([name, property]) => [
    name,
    exampleOf(document, property),
  ]);
  if (parts.length > 0 || entries.length > 0) return Object.assign({}, ...parts, Object.fromEntries(entries));
  return schema.type === 'string' ? 'text' : schema.type === 'boolean' ? true : 1;
}

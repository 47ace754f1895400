/** A node of an OpenAPI document. */
interface Node {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
  readonly name?: string;
  readonly in?: string;
  readonly required?: unknown;
  readonly description?: string;
  readonly schema?: Node;
  readonly content?: Record<string, Node>;
}

interface Operation extends Node {
  readonly summary?: string;
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly security?: readonly object[];
  readonly parameters?: readonly Node[];
  readonly requestBody?: Node;
  readonly responses: Record<string, Node>;
}

interface OpenApi {
  readonly info: { readonly title: string; readonly description?: string };
  readonly paths: Record<string, Record<string, Operation>>;
}

/**
 * A collection for Postman (format 2.1) as JSON: each operation of an OpenAPI 3.1 document with the examples of its schemas, and a test
 * that the response is a success that the document has. Optional parameters are switched off, because they would change the
 * request. Its variables are `baseUrl`, `bearerToken` and, if the document has paths of other versions, `rootUrl`.
 *
 * @param json the document
 * @param baseUrl the URL that the paths of the document follow, such as `https://api.example.com/v1`
 */
export function postmanCollection(json: string, baseUrl: string): string {
  const document = JSON.parse(json) as OpenApi;
  const folders = new Map<string, object[]>();
  let isRooted = false;
  for (const [path, { servers, ...methods }] of Object.entries(document.paths)) {
    isRooted ||= servers !== undefined;
    for (const [method, operation] of Object.entries(methods)) {
      const [tag = document.info.title] = operation.tags ?? [];
      const host = servers === undefined ? '{{baseUrl}}' : '{{rootUrl}}';
      const items = folders.get(tag) ?? [];
      folders.set(tag, [...items, itemOf(document, method.toUpperCase(), host, path, operation)]);
    }
  }
  const variables = { baseUrl, bearerToken: '', ...(isRooted && { rootUrl: baseUrl.replace(/\/v1$/, '') }) };
  const collection = {
    info: {
      name: document.info.title,
      description: document.info.description,
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{bearerToken}}', type: 'string' }] },
    variable: Object.entries(variables).map(([key, value]) => ({ key, value })),
    item: [...folders].map(([name, item]) => ({ name, item })),
  };
  return `${JSON.stringify(collection, null, 2)}\n`;
}

function itemOf(document: OpenApi, method: string, host: string, path: string, operation: Operation): object {
  const { parameters = [], requestBody, security, summary, operationId, description } = operation;
  const entriesOf = (location: string): object[] =>
    parameters
      .filter((parameter) => parameter.in === location)
      .flatMap(({ name: key, schema, example = exampleOf(document, schema), required, description: about }) =>
        // Items of an array are sent as parameters of the same name.
        ([example].flat() as (string | number | boolean)[]).map((value) => ({
          key,
          value: String(value),
          description: about,
          ...(required !== true && { disabled: true }),
        })),
      );
  const segments = path.slice(1).replaceAll(/\{(\w+)\}/g, ':$1');
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const isJson = type === 'application/json';
  return {
    name: summary ?? operationId,
    event: [{ listen: 'test', script: { type: 'text/javascript', exec: testsOf(operation) } }],
    request: {
      method,
      description,
      ...(security?.length === 0 && { auth: { type: 'noauth' } }),
      header: [...(type === undefined ? [] : [{ key: 'Content-Type', value: type }]), ...entriesOf('header')],
      url: {
        raw: `${host}/${segments}`,
        host: [host],
        path: segments.split('/'),
        query: entriesOf('query'),
        variable: entriesOf('path'),
      },
      ...(isJson && {
        body: {
          mode: 'raw',
          raw: JSON.stringify(exampleOf(document, media?.schema), null, 2),
          options: { raw: { language: 'json' } },
        },
      }),
    },
  };
}

/** The lines of a script of Postman. */
function testsOf({ responses }: Operation): string[] {
  const successes = Object.keys(responses).filter((status) => /^[23]/.test(status));
  const expected = `[${successes.join(', ')}]`;
  const isJson = successes.some((status) => responses[status]?.content?.['application/json'] !== undefined);
  return [
    `pm.test('the status is one of ${expected}', () => pm.expect(pm.response.code).to.be.oneOf(${expected}));`,
    ...(isJson ? ["pm.test('the body is JSON', () => pm.response.code === 304 || pm.response.to.be.json);"] : []),
  ];
}

/** A value that a schema describes: its example, or one made of the examples of its parts. A schema within itself is null. */
function exampleOf(document: OpenApi, schema: Node | undefined, within: readonly string[] = []): unknown {
  const { $ref, examples, allOf, properties, items, default: usual, enum: values, type } = schema ?? {};
  const [example = (values as unknown[] | undefined)?.[0] ?? usual] = (examples ?? []) as unknown[];
  if (example !== undefined) return example;
  if ($ref !== undefined) {
    if (within.includes($ref)) return null;
    const target = $ref
      .split('/')
      .slice(1)
      .reduce<unknown>((at, step) => (at as Node)[step], document);
    return exampleOf(document, target as Node, [...within, $ref]);
  }
  if (properties !== undefined || allOf !== undefined) {
    const parts = ((allOf ?? []) as Node[]).map((part) => exampleOf(document, part, within));
    const members = Object.entries((properties ?? {}) as Record<string, Node>);
    const own = members.map(([name, member]) => [name, exampleOf(document, member, within)] as const);
    const isObject = properties !== undefined || parts.some((part) => typeof part === 'object');
    return isObject ? Object.assign({}, ...parts, Object.fromEntries(own)) : parts[0];
  }
  if (items !== undefined) return [exampleOf(document, items as Node, within)];
  return { string: '', integer: 0, number: 0, boolean: false, object: {} }[String(type)] ?? null;
}

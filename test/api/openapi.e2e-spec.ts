import { join } from 'node:path';
import { Body, Delete, Get, HttpCode, Module, Param, Post, Query } from '@nestjs/common';
import { ApiNotFoundResponse, ApiOkResponse, ApiOperation, ApiSchema } from '@nestjs/swagger';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { defineError, errorCatalogue, FailsWith } from '#errors';
import { IntegerParameter, TextProperty } from '#input';
import { Deprecated, RequireScopes } from '#operations';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { ServedDocument } from '../support/served-document.js';

interface Described {
  $ref?: string;
  description?: string;
  examples?: unknown;
  properties?: Record<string, Described>;
  [key: string]: unknown;
}

interface Response extends Described {
  headers?: Record<string, Described>;
  content?: Record<string, { schema: Described; example?: unknown; examples?: Record<string, Described> }>;
}

interface Operation extends Described {
  operationId: string;
  parameters?: (Described & { name: string; example?: unknown })[];
  requestBody?: Response;
  responses: Record<string, Response>;
}

interface OpenApi {
  info: Described;
  servers: object[];
  tags: Described[];
  paths: Record<string, Record<string, Operation>>;
  components: Record<'schemas' | 'examples' | 'securitySchemes', Record<string, Described>>;
}

let app: TestApp;
let document: OpenApi;
beforeAll(async () => {
  app = await createTestApp();
  document = await readDocument(app);
});
afterAll(() => app.close());

async function readDocument({ client }: TestApp): Promise<OpenApi> {
  return JSON.parse((await client.get('/openapi.json', { apiKey: null })).text) as OpenApi;
}

function operationsOf({ paths }: OpenApi): Operation[] {
  return Object.values(paths).flatMap((item) => Object.values(item));
}

function operationOf(openApi: OpenApi, name: string): Operation {
  return operationsOf(openApi).find(({ operationId }) => operationId === name) as Operation;
}

/** The target of a reference; any other value is returned unchanged. */
function resolve<T extends Described>(openApi: OpenApi, value: T): T {
  if (value.$ref === undefined) return value;
  const steps = value.$ref.split('/').slice(1);
  return steps.reduce<unknown>((node, step) => (node as Record<string, unknown> | undefined)?.[step], openApi) as T;
}

function responseOf(openApi: OpenApi, name: string, status: string): Response {
  return resolve(openApi, operationOf(openApi, name).responses[status] as Response);
}

/** Error codes of a response, taken from its examples. */
function codesOf(openApi: OpenApi, name: string, status: string): string[] {
  return Object.keys(responseOf(openApi, name, status).content?.['application/json']?.examples ?? {});
}

describe('the document', () => {
  test('is openapi.json, byte for byte', async () => {
    const checkedIn = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8');
    expect((await app.client.get('/openapi.json')).text).toBe(checkedIn);
  });

  test.each(['1.1', '1.2'] as const)('is the same as YAML %s', async (version) => {
    const answer = await app.client.get('/openapi.yaml', { apiKey: null });
    expect(answer.headers['content-type']).toBe('application/yaml');
    expect(parse(answer.text, { version })).toEqual(document);
  });

  test.each([
    ['gzip, br', 'br'],
    ['gzip, br;q=0', 'gzip'],
    ['identity', null],
  ])('comes in a coding that the client accepts: %s', async (accepted, coding) => {
    const read = (ifNoneMatch: string): ReturnType<typeof fetch> =>
      fetch(`${app.origin}/openapi.json`, { headers: { 'accept-encoding': accepted, 'if-none-match': ifNoneMatch } });
    const response = await read('"none"');
    const { headers } = response;
    expect([headers.get('content-encoding'), headers.get('vary')]).toEqual([coding, 'Accept-Encoding, Authorization']);
    expect(await response.json()).toEqual(document);
    // A cache would otherwise take the content that it has for compressed.
    const known = await read(String(headers.get('etag')));
    expect([known.status, known.headers.get('content-encoding')]).toEqual([304, null]);
  });

  test('describes everything', () => {
    const operations = operationsOf(document);
    const responses = operations.flatMap((operation) => Object.values(operation.responses));
    const schemas = Object.values(document.components.schemas);
    const described: Described[] = [document.info, ...document.tags, ...schemas, ...operations, ...responses];
    for (const { parameters = [], requestBody } of operations) {
      described.push(...parameters);
      // The class of a body describes it, unless its operation does.
      if (requestBody) described.push({ ...requestBody.content?.['application/json']?.schema, ...requestBody });
    }
    for (const one of responses) described.push(...Object.values(resolve(document, one).headers ?? {}));
    for (const { properties } of schemas) described.push(...Object.values(properties ?? {}));
    const gaps = described.filter((one) => !(one.description ?? resolve(document, one).description)?.trim());
    expect(gaps).toEqual([]);
    const unnamed = operations.filter(({ summary }) => typeof summary !== 'string').map((one) => one.operationId);
    expect({ 'need a summary in @ApiOperation': unnamed }).toEqual({ 'need a summary in @ApiOperation': [] });
  });

  test('has no broken reference and no unused component', () => {
    const references = new Set(JSON.stringify(document).match(/(?<="\$ref":")[^"]+/g));
    for (const $ref of references) {
      expect(resolve(document, { $ref })).toBeDefined();
    }
    const { securitySchemes: _, ...kinds } = document.components;
    const components = Object.entries(kinds).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `#/components/${kind}/${name}`),
    );
    expect([...references].sort()).toEqual(components.sort());
  });

  test('has valid examples only', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema({ $id: 'document', components: { schemas: document.components.schemas } });
    const error: Described = { $ref: '#/components/schemas/Error' };
    const found = Object.values(document.components.examples).map(({ value }) => [error, value]);
    // Every object with a schema and an example, and every schema with examples.
    JSON.stringify(document, (_, node: Described | null) => {
      const { schema, example, type, examples } = node ?? {};
      if (schema !== undefined && example !== undefined) found.push([schema, example]);
      if (typeof type === 'string' && Array.isArray(examples))
        found.push(...examples.map((one): [Described, unknown] => [node as Described, one]));
      return node;
    });
    expect(found.length).toBeGreaterThan(60);
    for (const [schema, example] of found) {
      const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as Described;
      expect({ example, valid: ajv.validate(absolute, example) }).toEqual({ example, valid: true });
    }
  });

  test('names every code of the catalogue at the operations that can return it, with the right status', () => {
    const named = new Set(
      operationsOf(document).flatMap(({ operationId, responses }) =>
        Object.keys(responses).flatMap((status) => codesOf(document, operationId, status)),
      ),
    );
    const codes = errorCatalogue().map(({ code }) => code);
    expect([...named].sort()).toEqual(codes.filter((code) => code !== TOY_BROKEN.code).sort());
    for (const { operationId: name, responses } of operationsOf(document)) {
      for (const status of Object.keys(responses).filter((key) => key !== 'default')) {
        for (const code of codesOf(document, name, status)) {
          expect(errorCatalogue()).toContainEqual(expect.objectContaining({ code, status: Number(status) }));
          expect(responseOf(document, name, status).description).toContain(`\`${code}\``);
        }
      }
    }
  });
});

describe('requests and responses', () => {
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);

  // The first test that adds a pet: the examples are of the only one.
  test('the service accepts the examples of the schemas, and its responses are like them', async () => {
    const { paths, components } = document;
    const exampleOf = (name: string): unknown => {
      const members = Object.entries((components.schemas[name] as { properties: object }).properties);
      return Object.fromEntries(members.map(([member, { examples }]) => [member, (examples as unknown[])[0]]));
    };
    const created = await app.client.post('/v1/pets', exampleOf('NewPet'));
    expect([created.status, created.json]).toEqual([201, exampleOf('Pet')]);
    const id = paths['/pets/{petId}']?.['get']?.parameters?.[0]?.example;
    const found = await app.client.get(`/v1/pets/${String(id)}`);
    expect([found.status, found.json]).toEqual([200, exampleOf('Pet')]);
    // Alone and together, as importers send them. A cursor, an ETag and a key are of one request.
    const parameters = Object.entries(paths).flatMap(([path, operations]) =>
      path.startsWith('/pets') ? Object.values(operations).flatMap((each) => each.parameters ?? []) : [],
    );
    const examples = parameters.flatMap(({ name, schema }) => {
      const { examples: [value] = [] } = resolve(document, schema as Described) as { examples?: unknown[] };
      return value === undefined ? [] : [`${name}=${JSON.stringify(value)}`];
    });
    expect(new Set(examples)).toEqual(new Set(['limit=20', 'status="available"', 'petId=1']));
    for (const query of ['limit=20', 'status=available', 'limit=20&status=available']) {
      const listed = await app.client.get(`/v1/pets?${query}`);
      expect([query, listed.status, listed.json]).toEqual([query, 200, [exampleOf('Pet')]]);
    }
    const content = paths['/pets']?.['post']?.requestBody?.content?.['application/json'];
    expect(content?.examples).toEqual({ pet: { value: exampleOf('NewPet') } });
  });

  test('the schema of cursor accepts the cursors that the service issues', async () => {
    const schema = operationOf(document, 'listPets').parameters?.[2]?.['schema'] as object;
    await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    await app.client.post('/v1/pets', { name: 'Tom', categoryId: 7 });
    for (const query of ['limit=1', 'limit=1&status=available']) {
      const { link } = (await app.client.get(`/v1/pets?${query}`)).headers;
      const cursor = /cursor=([^>]*)>/.exec(link as string)?.[1];
      expect(ajv.validate(schema, cursor)).toBe(true);
      expect((await app.client.get(`/v1/pets?${query}&cursor=${cursor}`)).status).toBe(200);
    }
  });

  test.each<[string, boolean]>([
    ['x'.repeat(255), true],
    ['x'.repeat(256), false],
    [`"${String.raw`\\`.repeat(255)}"`, true],
    [`"${String.raw`\\`.repeat(255)}x"`, false],
    ['""', false],
  ])('the schema of Idempotency-Key accepts exactly the values that the service accepts: %#', async (key, isValid) => {
    const schema = operationOf(document, 'createPet').parameters?.[0]?.['schema'] as object;
    expect(ajv.validate(schema, key)).toBe(isValid);
    const headers = { 'idempotency-key': key };
    const answer = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { headers });
    expect(answer.status).toBe(isValid ? 201 : 400);
  });

  test('also those that api/fuzz does not generate have the header fields and codes that the document declares', async () => {
    const served = new ServedDocument(JSON.stringify(document));
    const pet = { name: 'Rex', categoryId: 7 };
    const creations = [
      ['first', pet],
      ['first', pet],
      ['first', { ...pet, name: 'Tom' }],
      ['', pet],
    ] as const;
    const statuses: number[] = [];
    for (const [key, body] of creations) {
      const answer = await app.client.post('/v1/pets', body, { headers: { 'idempotency-key': key } });
      statuses.push(answer.status);
      expect(served.faultsOf(['/pets', 'post'], answer)).toEqual([]);
    }
    expect(statuses).toEqual([201, 201, 422, 400]);
    app.clock.travelTo('2030-12-05T00:00:00Z');
    const removed = await app.client.get('/v1/pets/1');
    app.clock.comeBack();
    expect([removed.status, served.faultsOf(['/pets/{petId}', 'get'], removed)]).toEqual([410, []]);
  });
});

describe('the pages', () => {
  test('/docs/guide is docs/guide.md, with the base URL of this service', async () => {
    const { text } = await app.client.get('/docs/guide', { apiKey: null });
    const plain = text.replace(/<[^>]*>/g, '').replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(+code));
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guide.md'), 'utf8');
    const samples = [...guide.matchAll(/^```\w+\n(.*?)\n```$/gms)].map(([, code = '']) => code);
    expect(samples.length).toBeGreaterThan(25);
    for (const sample of samples)
      expect(plain).toContain(sample.replaceAll('http://localhost:3000/v1', app.config.publicBaseUrl));
    const anchors = [...text.matchAll(/<li><a href="#([\w-]+)">/g)].map(([, anchor]) => anchor);
    expect(anchors).toContain('deprecation');
    for (const anchor of anchors) expect(text).toContain(`<h2 id="${anchor}">`);
    expect(text).not.toMatch(/\.md"|href="[^"]*localhost:3000\/docs|npm run/);
  });

  test('/docs/client.tgz is the package that the build has made', async () => {
    const served = await (await fetch(`${app.origin}/docs/client.tgz`)).arrayBuffer();
    expect(Buffer.from(served).equals(readFileSync(join(import.meta.dirname, '../../dist/client.tgz')))).toBe(true);
  });

  test('a service without a client has nothing there, and its guide does not name the address', async () => {
    const other = await createTestApp({ document: { readClient: undefined } });
    const { status, json } = await other.client.get('/docs/client.tgz');
    const guide = await other.client.get('/docs/guide');
    await other.close();
    expect([status, json.code, guide.status]).toEqual([404, 'route_not_found', 200]);
    expect(guide.text).not.toContain('client.tgz');
  });
});

const TOY_BROKEN = defineError('toy_broken', 409, 'The toy is broken.');

@ApiSchema({ description: 'A toy to add.' })
class NewTestToy {
  @TextProperty({ description: 'Name of the toy.', minLength: 1, maxLength: 20, example: 'Ball' })
  name: string;
}

class ListTestToysQuery {
  @IntegerParameter({ description: 'How many.', minimum: 1, maximum: 5, required: false })
  limit?: number;
}

const TOYS = new Handlers('test-toys');
TOYS.add(Get(), 'listTestToys', () => [], {
  parameters: [[Query(), ListTestToysQuery]],
  decorators: [
    ApiOperation({ summary: 'List toys', description: 'All toys.' }),
    ApiOkResponse({ type: [NewTestToy], description: 'The toys.' }),
  ],
});
TOYS.add(Post(), 'createTestToy', (toy: NewTestToy) => toy, {
  parameters: [[Body(), NewTestToy]],
  decorators: [RequireScopes('toys:write'), FailsWith(TOY_BROKEN)],
});
const DEPRECATED = {
  since: '2027-01-01T00:00:00Z',
  sunset: '2028-01-01T00:00:00Z',
  successor: '/test-toys',
  replacement: 'Keep <it>.',
};
TOYS.add(Delete(':toyId'), 'deleteTestToy', () => undefined, {
  parameters: [[Param('toyId'), String]],
  decorators: [
    ...[RequireScopes(), HttpCode(204), Deprecated(DEPRECATED)],
    ApiNotFoundResponse({ description: 'There is no such toy.' }),
  ],
});

@Module({ controllers: [TOYS.controller] })
class ToysModule {}

test('a module that the platform does not know is in the document, as its decorators say, and the document is valid OpenAPI 3.1', async () => {
  const extended = await createTestApp({ features: [ToysModule] });
  const openApi = await readDocument(extended);
  await extended.close();
  const responsesOf = (name: string): string => Object.keys(operationOf(openApi, name).responses).join(' ');
  expect(responsesOf('listTestToys')).toBe('200 304 400 500 503 default');
  expect(responsesOf('createTestToy')).toBe('201 400 401 403 409 413 415 429 500 503 default');
  expect(responsesOf('deleteTestToy')).toBe('204 401 404 410 429 500 503 default');
  expect(codesOf(openApi, 'createTestToy', '409')).toEqual(['toy_broken']);
  expect(codesOf(openApi, 'createTestToy', '401')).toContain('missing_api_key');
  expect(responseOf(openApi, 'deleteTestToy', '404').description).toBe('There is no such toy.');
  expect(operationOf(openApi, 'listTestToys')).toMatchObject({ security: [] });
  expect(operationOf(openApi, 'createTestToy')).toMatchObject({ 'x-required-scopes': ['toys:write'] });
  expect(operationOf(openApi, 'deleteTestToy')).toMatchObject({ deprecated: true, 'x-sunset': '2028-01-01' });
  expect(responseOf(openApi, 'deleteTestToy', '204').headers).toHaveProperty('Sunset');
  const validator = new Validator();
  expect(await validator.validate(structuredClone(openApi) as unknown as Record<string, unknown>)).toEqual({
    valid: true,
  });
  expect(validator.version).toBe('3.1');
});

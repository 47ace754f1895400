import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addedOperations, contractChanges, judgeChanges } from '../../scripts/breaking-changes.js';

/** An OpenAPI document, or a part of it, as JSON.parse returns it. */
type Node = any;

const read = (name: string): string => readFileSync(join(import.meta.dirname, '../..', name), 'utf8');
const released = (): object => JSON.parse(read('openapi.json')) as object;

/** The changes that are found after an edit of the document. */
function changesOf(edit: (document: Node, schemas: Node) => unknown): ReturnType<typeof contractChanges> {
  const current: Node = released();
  edit(current, current.components.schemas);
  return contractChanges(released(), current as object);
}

function add(list: Node, item: unknown): void {
  (list as unknown[]).push(item);
}

function removeLast(list: Node): void {
  (list as unknown[]).pop();
}

const list = ({ paths }: Node): Node => paths['/pets'].get;
const create = ({ paths }: Node): Node => paths['/pets'].post;
const get = ({ paths }: Node): Node => paths['/pets/{petId}'].get;
const limit = (document: Node): Node => list(document).parameters[0];

test.each<[string, (document: Node, schemas: Node) => unknown]>([
  ['POST /pets: removed', ({ paths }) => delete paths['/pets'].post],
  ['GET /pets: operationId was "listPets", is "list"', (api) => (list(api).operationId = 'list')],
  ['server /v1: removed', (api) => (api.servers[0].url = '/v2')],
  ['GET /pets/{petId}: sunset was 2030-12-05, is 2026-12-05', (api) => (get(api)['x-sunset'] = '2026-12-05')],
  [
    'GET /pets/{petId}, response 404: error pet_not_found removed',
    (api) => (get(api).responses['404'].content['application/json'].examples = { no_pet: {} }),
  ],
  ['GET /pets: needs the scope pets:all', (api) => add(list(api)['x-required-scopes'], 'pets:all')],
  ['GET /pets: security was [{"bearerAuth":[]}], is [{"other":[]}]', (api) => (list(api).security = [{ other: [] }])],
  [
    'GET /pets: scheme of the security scheme bearerAuth was "bearer", is "basic"',
    ({ components }) => (components.securitySchemes.bearerAuth.scheme = 'basic'),
  ],
  ['GET /pets, header parameter If-None-Match: removed', (api) => removeLast(list(api).parameters)],
  ['GET /pets, query parameter limit: is required and was not', (api) => (limit(api).required = true)],
  [
    'GET /pets, query parameter shop: is new and required',
    (api) => add(list(api).parameters, { name: 'shop', in: 'query', required: true, schema: { type: 'string' } }),
  ],
  ['GET /pets, query parameter limit: maximum was 100, is 50', (api) => (limit(api).schema.maximum = 50)],
  [
    `GET /pets, query parameter limit: default was ${limit(released()).schema.default}, is 50`,
    (api) => (limit(api).schema.default = 50),
  ],
  ['GET /pets, query parameter limit: type was "integer", is "string"', (api) => (limit(api).schema.type = 'string')],
  [
    'POST /pets, request body, member owner: is required and was not',
    (_, { NewPet }) => ((NewPet.properties.owner = { type: 'string' }), add(NewPet.required, 'owner')),
  ],
  [
    'GET /pets, query parameter status: enum was ["available","pending","sold"], is ["available","pending"]',
    (_, { PetStatus }) => removeLast(PetStatus.enum),
  ],
  ['POST /pets, request body: removed', (api) => delete create(api).requestBody],
  ['GET /pets, request body: is new and required', (api) => (list(api).requestBody = { required: true, content: {} })],
  [
    'POST /pets, request body, application/json: removed',
    (api) => (create(api).requestBody.content = { 'text/json': {} }),
  ],
  ['POST /pets, response 422: removed', (api) => delete create(api).responses['422']],
  ['GET /pets, response 200, header Link: removed', (api) => delete list(api).responses['200'].headers.Link],
  [
    'POST /pets, response 201, header Location: may be missing and could not',
    ({ components }) => (components.headers.Location.required = false),
  ],
  [
    'GET /pets, response 200, items, member status: removed',
    (_, { Pet }) => (delete Pet.properties.status, removeLast(Pet.required)),
  ],
  ['POST /pets, response 201, member status: may be missing and could not', (_, { Pet }) => removeLast(Pet.required)],
  [
    'POST /pets, response 201, member status: enum was ["available","pending","sold"], is ["available","pending","sold","lost"]',
    (_, { PetStatus }) => add(PetStatus.enum, 'lost'),
  ],
  [
    'POST /pets, response 201: not was none, is {"required":["owner"]}',
    (_, { Pet }) => (Pet.not = { required: ['owner'] }),
  ],
])('breaks clients: %s', (change, edit) => {
  expect(changesOf(edit).breaking).toContain(change);
});

const LONGER = `maxLength was ${(released() as Node).components.schemas.Pet.properties.name.maxLength}, is 10000`;

test.each<[string, (document: Node, schemas: Node) => unknown, string[]]>([
  [
    'a longer text',
    (_, { Pet }) => (Pet.properties.name.maxLength = 10_000),
    [
      `GET /pets, response 200, items, member name: ${LONGER}`,
      `POST /pets, response 201, member name: ${LONGER}`,
      `GET /pets/{petId}, response 200, member name: ${LONGER}`,
    ],
  ],
  ['more items', (_, { Pets }) => (Pets.maxItems = 200), ['GET /pets, response 200: maxItems was 100, is 200']],
  ['no limit', (_, { Pets }) => delete Pets.maxItems, ['GET /pets, response 200: maxItems was 100, is none']],
  [
    'another pattern',
    ({ components }) => (components.headers.Deprecation.schema.pattern = '^@'),
    [200, 304, 404, 410].map(
      (status) => `GET /pets/{petId}, response ${status}, header Deprecation: pattern was "^@-?[0-9]+$", is "^@"`,
    ),
  ],
])('widens responses: %s', (_name, edit, widening) => {
  expect(changesOf(edit)).toEqual({ breaking: [], widening });
});

describe('openapi.accepted.json', () => {
  const entry = { version: '2.1.0', reason: 'Nobody calls it any more.', changes: ['POST /pets: removed'] };
  const breaking = ['POST /pets: removed', 'GET /pets: removed'];

  test('accepts exactly the changes that it lists', () => {
    expect(judgeChanges(breaking, [entry])).toEqual({ refused: ['GET /pets: removed'], faults: [] });
  });

  test.each<[string, object, string]>([
    ['a version', { version: 'next' }, 'entry 1 needs the version of the release that has it, such as "2.1.0"'],
    ['a reason', { reason: ' ' }, 'entry 1 needs a reason'],
    [
      'a change that exists',
      { changes: ['PUT /pets: removed'] },
      'no such change, so remove the line: PUT /pets: removed',
    ],
  ])('needs %s', (_name, part, fault) => {
    expect(judgeChanges(breaking, [{ ...entry, ...part }]).faults).toEqual([fault]);
  });
});

test('CHANGELOG.md tells clients of a document that differs from the released one', () => {
  if (read('openapi.json') === read('openapi.released.json')) return;
  const [, unreleased = ''] = /^## Unreleased\n(.*?)(?=^## |(?![^]))/ms.exec(read('CHANGELOG.md')) ?? [];
  // The heading of clients, with an entry.
  expect(unreleased).toMatch(/^### Clients\n\n- /m);
});

test.each<[string, (document: Node, schemas: Node) => unknown]>([
  ['nothing changed', () => undefined],
  ['a new operation', ({ paths }) => (paths['/pets'].delete = { responses: {} })],
  [
    'a new optional parameter',
    (api) => add(list(api).parameters, { name: 'shop', in: 'query', schema: { type: 'string' } }),
  ],
  ['parameters in another order', (api) => (list(api).parameters as unknown[]).reverse()],
  ['a new optional member of input', (_, { NewPet }) => (NewPet.properties.owner = { type: 'string' })],
  ['a new member of output', (_, { Pet }) => ((Pet.properties.owner = { type: 'string' }), add(Pet.required, 'owner'))],
  ['a later sunset', (api) => (get(api)['x-sunset'] = '2031-01-01')],
  ['a wider bound of input', (api) => (limit(api).schema.maximum = 200)],
  ['a wider type of input', (api) => (limit(api).schema.type = 'number')],
  ['no pattern of input', (_, { NewPet }) => delete NewPet.properties.name.pattern],
  ['a narrower bound of output', (_, { Pets }) => (Pets.maxItems = 100)],
  ['a new response', (api) => (list(api).responses['451'] = { description: 'Unavailable for legal reasons.' })],
  ['other words of a schema', (_, { Pet }) => (Pet.description = 'A pet.')],
  ['other words of a parameter', (api) => (limit(api).description = 'How many.')],
  ['another title', (api) => (api.info.title = 'Pets')],
  ['a schema written in place', (api, { PetStatus }) => void (list(api).parameters[1].schema = { ...PetStatus })],
])('breaks no client: %s', (_name, edit) => {
  expect(changesOf(edit)).toEqual({ breaking: [], widening: [] });
});

test('a new operation is named with the scopes whose keys may call it', () => {
  const current: Node = released();
  current.paths['/pets'].delete = { 'x-required-scopes': ['pets:write'] };
  current.paths['/toys'] = { get: {}, put: { 'x-required-scopes': [] } };
  expect(addedOperations(released(), current as object)).toEqual([
    'DELETE /pets: open to every key with pets:write',
    'GET /toys: needs no key',
    'PUT /toys: open to every key with any scope',
  ]);
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { surfaceOf, unsentParameters } from '../scripts/surface.js';

const read = (path: string): string => readFileSync(join(import.meta.dirname, '../../..', path), 'utf8');
const documentOf = (): Node => JSON.parse(read('openapi.json')) as Node;

/** A part of an OpenAPI document that a test changes. */
interface Node {
  [key: string]: Node;
}

/** The lines that an edit of the document removes and adds. */
function changesOf(edit: (list: Node, create: Node, components: Node) => unknown): string[] {
  const document = documentOf();
  const before = surfaceOf(document);
  const { '/pets': path } = document['paths'] as { '/pets': { get: Node; post: Node } };
  edit(path.get, path.post, document['components'] as Node);
  const after = surfaceOf(document);
  return [
    ...before.filter((line) => !after.includes(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
  ];
}

const parameters = (operation: Node): object[] => operation['parameters'] as unknown as object[];
const set = (place: unknown, members: object): unknown => Object.assign(place as object, members);

test.each<[string, Parameters<typeof changesOf>[0], string[]]>([
  [
    'a query parameter',
    (list) => parameters(list).push({ name: 'tag', in: 'query', schema: { type: 'string' } }),
    ['+ listPets query tag?: {"type":"string"}'],
  ],
  [
    'a header parameter that is required',
    (_, create) => parameters(create).push({ name: 'Shop', in: 'header', required: true, schema: { type: 'string' } }),
    ['+ createPet header Shop: {"type":"string"}'],
  ],
  [
    'another type of a parameter',
    (list) => set(parameters(list)[1], { schema: { type: 'integer' } }),
    ['- listPets query status?: PetStatus', '+ listPets query status?: {"type":"integer"}'],
  ],
  [
    'a member of a body, and one named as an annotation',
    (_, __, { schemas }) => set(schemas?.['NewPet']?.['properties'], { tag: {}, title: { type: 'string' } }),
    ['+ schema NewPet.tag?: {}', '+ schema NewPet.title?: {"type":"string"}'],
  ],
  [
    'a member that became required',
    (_, __, { schemas }) => set(schemas?.['NewPet'], { required: ['name', 'categoryId', 'status'] }),
    [
      '- schema NewPet.status?: {"$ref":"#/components/schemas/PetStatus","allOf":[{"default":"available"}]}',
      '+ schema NewPet.status: {"$ref":"#/components/schemas/PetStatus","allOf":[{"default":"available"}]}',
    ],
  ],
  [
    'a limit of a member',
    (_, __, { schemas }) => set(schemas?.['Pet']?.['properties'], { id: { type: 'integer', maximum: 9 } }),
    ['- schema Pet.id: {"type":"integer","format":"int64"}', '+ schema Pet.id: {"type":"integer","maximum":9}'],
  ],
  [
    'a status',
    (_, create) => set(create['responses'], { 202: { content: { 'application/json': { schema: {} } } } }),
    ['+ createPet 202 header ', '+ createPet 202 body application/json: {}'],
  ],
  [
    'a media type of a response',
    (_, create) => set(create['responses']?.['201']?.['content'], { 'text/csv': {} }),
    ['+ createPet 201 body text/csv: {}'],
  ],
  [
    'a header field of a response',
    (list) => set(list['responses']?.['304'], { headers: { Age: {} } }),
    [
      '- listPets 304 header X-Request-Id, Cache-Control, ETag, Vary, RateLimit-Policy, RateLimit, Link (NextPage)',
      '+ listPets 304 header Age',
    ],
  ],
  [
    'another value of a header field',
    (_, __, { headers }) => set(headers?.['Sunset'], { schema: { type: 'integer' } }),
    ['- header Sunset?: {"type":"string"}', '+ header Sunset?: {"type":"integer"}'],
  ],
  ['no text', (list, _, { schemas }) => [set(list, { summary: 'x' }), set(schemas?.['Pet'], { description: 'x' })], []],
])('%s is seen', (_name, edit, changes) => {
  expect(changesOf(edit)).toEqual(changes);
});

test('a parameter that the source of the client does not name is found; comments do not count', () => {
  const source = `/* 'limit' */ const x = ['status', 'if-none-match', 'idempotency-key']; // 'limit'`;
  expect(unsentParameters(documentOf(), source, ['cursor'])).toEqual(['limit']);
});

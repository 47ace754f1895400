import { postmanCollection } from './postman.js';

interface Collection {
  variable: unknown[];
  item: {
    name: string;
    item: {
      name: string;
      event: [{ script: { exec: string[] } }];
      request: { header: object[]; body: { raw: string }; url: { host: string[]; variable: object[] } };
    }[];
  }[];
}

const json = { 'application/json': {} };
const TREE = {
  properties: {
    name: { examples: ['Ball'] },
    size: { $ref: '#/components/schemas/Size' },
    parts: { items: { $ref: '#/components/schemas/Tree' } },
    count: { type: 'integer', allOf: [{ default: 7 }] },
    note: { type: 'string' },
  },
};
const DOCUMENT = {
  info: { title: 'Toy Shop' },
  paths: {
    '/toys/{toyId}': {
      get: {
        operationId: 'getToy',
        tags: ['Toys'],
        security: [],
        parameters: [
          { name: 'toyId', in: 'path', required: true, example: 3 },
          { name: 'tag', in: 'query', schema: { type: 'array', examples: [['a', 'b']] } },
          { name: 'If-None-Match', in: 'header', schema: { type: 'string' } },
        ],
        responses: { 200: { content: json }, 304: {}, 404: {}, default: {} },
      },
    },
    '/v2/toys': {
      servers: [{ url: '/' }],
      post: {
        operationId: 'createToy',
        summary: 'Add a toy',
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Tree' } } } },
        responses: { 204: {} },
      },
    },
  },
  components: { schemas: { Tree: TREE, Size: { enum: ['small', 'large'] } } },
};

const collectionOf = (document: object): Collection =>
  JSON.parse(postmanCollection(JSON.stringify(document), 'https://api.example.com/v1')) as Collection;

const itemOf = (folder: string): Collection['item'][0]['item'][0] => {
  const [item] = collectionOf(DOCUMENT).item.find(({ name }) => name === folder)?.item ?? [];
  return item as NonNullable<typeof item>;
};

test('an operation becomes a request, with its optional parameters switched off', () => {
  const { name, request, event } = itemOf('Toys');
  expect(name).toBe('getToy');
  expect(request).toEqual({
    method: 'GET',
    auth: { type: 'noauth' },
    header: [{ key: 'If-None-Match', value: '', disabled: true }],
    url: {
      raw: '{{baseUrl}}/toys/:toyId',
      host: ['{{baseUrl}}'],
      path: ['toys', ':toyId'],
      query: [
        { key: 'tag', value: 'a', disabled: true },
        { key: 'tag', value: 'b', disabled: true },
      ],
      variable: [{ key: 'toyId', value: '3' }],
    },
  });
  expect(event[0].script.exec).toEqual([expect.stringContaining('[200, 304]'), expect.stringContaining('json')]);
});

test('a body is made of the examples of its schema; a schema within itself is null', () => {
  const { name, request, event } = itemOf('Toy Shop');
  expect(name).toBe('Add a toy');
  expect(JSON.parse(request.body.raw)).toEqual({ name: 'Ball', size: 'small', parts: [null], count: 7, note: '' });
  expect(request.header).toEqual([{ key: 'Content-Type', value: 'application/json' }]);
  expect(request).not.toHaveProperty('auth');
  expect(event[0].script.exec).toHaveLength(1);
});

test('paths of other versions have a variable of their own', () => {
  expect(itemOf('Toy Shop').request.url.host).toEqual(['{{rootUrl}}']);
  expect(collectionOf(DOCUMENT).variable).toEqual([
    { key: 'baseUrl', value: 'https://api.example.com/v1' },
    { key: 'bearerToken', value: '' },
    { key: 'rootUrl', value: 'https://api.example.com' },
  ]);
  const paths = { '/toys/{toyId}': DOCUMENT.paths['/toys/{toyId}'] };
  expect(collectionOf({ ...DOCUMENT, paths }).variable).toHaveLength(2);
});

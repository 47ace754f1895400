/**
 * Prints a Postman collection (format 2.1) made from openapi.json: each operation with its example, and a test that the
 * response is a success that the document has. Its variables are `baseUrl` and `bearerToken`, the API key.
 */
import converter from 'openapi-to-postmanv2';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const BASE_URL = 'http://localhost:3000/v1';

const OPTIONS = {
  folderStrategy: 'Tags',
  requestNameSource: 'Fallback',
  parametersResolution: 'Example',
  // They are there, but switched off: their values would change the request.
  enableOptionalParameters: false,
};

const text = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8');
const document = JSON.parse(text);

const convert = promisify(converter.convertV2.bind(converter));
const { result, reason, output } = await convert({ type: 'string', data: text }, OPTIONS);
if (!result) throw new Error(`openapi.json cannot be converted: ${reason}`);
const [{ data: collection }] = output;

/** A script of Postman: the response has a status of success that the document has for the operation. */
function testOf({ responses }) {
  const successes = Object.keys(responses).map(Number);
  const expected = JSON.stringify(successes.filter((status) => status >= 200 && status < 300));
  const lines = [
    `pm.test('the status is one of ${expected}', () => pm.expect(pm.response.code).to.be.oneOf(${expected}));`,
    "pm.test('the body is JSON', () => pm.response.to.be.json);",
  ];
  return { listen: 'test', script: { type: 'text/javascript', exec: lines } };
}

/** The operation that a request of the collection was made from. */
function operationOf({ method, url }) {
  const path = `/${url.path.map((part) => part.replace(/^:(.*)$/, '{$1}')).join('/')}`;
  return document.paths[path][method.toLowerCase()];
}

collection.item = collection.item.filter(({ item }) => item.length > 0);
for (const folder of collection.item) {
  for (const item of folder.item) item.event = [testOf(operationOf(item.request))];
}
collection.variable = [
  { key: 'baseUrl', value: BASE_URL },
  { key: 'bearerToken', value: '' },
];
process.stdout.write(`${JSON.stringify(collection, null, 2)}\n`);

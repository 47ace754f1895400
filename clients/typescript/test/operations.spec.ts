import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { operationsWithoutMethod } from '../scripts/operations.js';

const ROOT = join(import.meta.dirname, '../../..');
const source = readFileSync(join(ROOT, 'clients/typescript/src/client.ts'), 'utf8');

test('an operation without a method of its name is found, and those of the API have one', () => {
  const document = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as { paths: object };
  expect(operationsWithoutMethod(document, source)).toEqual([]);
  const paths = { ...document.paths, '/toys': { parameters: [], get: { operationId: 'listToys' } } };
  expect(operationsWithoutMethod({ paths }, source)).toEqual(['listToys']);
});

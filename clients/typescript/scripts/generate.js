/**
 * Writes the generated files of the client from openapi.json: the types, and the names of int64 members. With `--check`
 * it writes nothing, and fails when the files differ, when the client lacks a method or a parameter, or when covered.txt is not
 * what the document has. With `--covered` it writes covered.txt, too: by that a developer says that the client has all of it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTypescript, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { int64MembersOf } from './int64-members.js';
import { operationsWithoutMethod } from './operations.js';
import { surfaceOf, unsentParameters } from './surface.js';

const DOCUMENT = new URL('../../../openapi.json', import.meta.url);
const CLIENT = new URL('../src/client.ts', import.meta.url);
const COVERED = new URL('../covered.txt', import.meta.url);
const GENERATED = new URL('../src/generated/', import.meta.url);
const HEADING = '// Generated from openapi.json by `npm run generate:client`. Do not edit.\n\n';

/** The client sends these by the link of a page alone. */
const IN_LINKS = ['cursor'];

const BIGINT = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);

async function typesOf(document) {
  const nodes = await openapiTypescript(document, {
    transform: ({ format }) => (format === 'int64' ? BIGINT : undefined),
  });
  return HEADING + astToString(nodes);
}

function int64Members(document) {
  const names = int64MembersOf(document).map((name) => `'${name}'`);
  return `${HEADING}export const INT64_MEMBERS: ReadonlySet<string> = new Set([${names.join(', ')}]);\n`;
}

const document = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
const files = { 'api.ts': await typesOf(document), 'int64-members.ts': int64Members(document) };
for (const [name, text] of Object.entries(files)) {
  const file = fileURLToPath(new URL(name, GENERATED));
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
  } else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${file} differs from openapi.json. Run: npm run generate:client\n`);
    process.exitCode = 1;
  }
}

const source = readFileSync(CLIENT, 'utf8');
const lacks = [
  ...operationsWithoutMethod(document, source).map((id) => `PetStoreClient has no method ${id}.`),
  ...unsentParameters(document, source, IN_LINKS).map(
    (name) => `PetStoreClient does not send the parameter '${name}'.`,
  ),
];
const surface = surfaceOf(document);
if (process.argv.includes('--covered')) writeFileSync(COVERED, `${surface.join('\n')}\n`);
const covered = readFileSync(COVERED, 'utf8').trimEnd().split('\n');
const differences = [
  ...covered.filter((line) => !surface.includes(line)).map((line) => `- ${line}`),
  ...surface.filter((line) => !covered.includes(line)).map((line) => `+ ${line}`),
];
if (differences.length > 0) {
  const heading = 'openapi.json differs from what the client covers (clients/typescript/covered.txt):';
  lacks.push([heading, ...differences].join('\n'));
}
if (lacks.length > 0) {
  process.stderr.write(
    `${lacks.join('\n')}\nChange clients/typescript/src/client.ts and its tests, as CONTRIBUTING.md shows, then run: ` +
      'npm run generate:client -- --covered\n',
  );
  if (process.argv.includes('--check')) process.exitCode = 1;
}

/**
 * Writes the generated files of the client from openapi.json: the types, and the names of int64 members. With `--check`
 * it writes nothing, and fails when the files differ.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTypescript, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { int64MembersOf } from './int64-members.js';

const DOCUMENT = new URL('../../../openapi.json', import.meta.url);
const GENERATED = new URL('../src/generated/', import.meta.url);
const HEADING = '// Generated from openapi.json by `npm run generate`. Do not edit.\n\n';

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
    process.stderr.write(`${file} differs from openapi.json. Run: npm run generate\n`);
    process.exitCode = 1;
  }
}

/**
 * Writes what the client knows of the API from openapi.json: the types, and which members are int64. With `--check` it
 * writes nothing and fails when the files differ.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTypescript, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const DOCUMENT = new URL('../../../openapi.json', import.meta.url);
const GENERATED = new URL('../src/generated/', import.meta.url);
const HEADING = '// Generated from openapi.json by `npm run generate:client`. Do not edit.\n\n';

const BIGINT = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);

async function typesOf(document) {
  const nodes = await openapiTypescript(document, {
    transform: ({ format }) => (format === 'int64' ? BIGINT : undefined),
  });
  return HEADING + astToString(nodes);
}

/**
 * The names of the members that are int64. The client finds them by name alone.
 *
 * @throws Error when a name is int64 in one schema and something else in another, or an int64 has no name of its own
 */
function int64MembersOf(document) {
  const isInt64 = new Map();
  const visit = (node, path) => {
    if (node === null || typeof node !== 'object') return;
    for (const [name, schema] of Object.entries(node.properties ?? {})) {
      const here = schema.format === 'int64';
      if ((isInt64.get(name) ?? here) !== here) throw new Error(`${name} is int64 in one schema and not in another`);
      isInt64.set(name, here);
    }
    for (const [key, child] of Object.entries(node)) {
      if (key === 'items' && child.format === 'int64') throw new Error(`${path}: an array of int64 is not supported`);
      visit(child, `${path}/${key}`);
    }
  };
  visit(document, '#');
  const names = [...isInt64].filter(([, is]) => is).map(([name]) => `'${name}'`);
  return `${HEADING}export const INT64_MEMBERS: ReadonlySet<string> = new Set([${names.sort().join(', ')}]);\n`;
}

const document = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
const files = { 'api.ts': await typesOf(document), 'int64-members.ts': int64MembersOf(document) };
for (const [name, text] of Object.entries(files)) {
  const file = fileURLToPath(new URL(name, GENERATED));
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
  } else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${file} differs from openapi.json. Run: npm run generate:client\n`);
    process.exitCode = 1;
  }
}

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/* One file uses undocumented members of pg, and pg is pinned to the version for which that file was written. */

const ROOT = new URL('../../', import.meta.url).pathname;
const INTERNALS = 'src/platform/database/statements/pg-internals.ts';

interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly version: string;
}

function readJson<Content>(path: string): Content {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Content;
}

test('pg is pinned exactly, to the version that is installed', () => {
  const pinned = readJson<Manifest>('package.json').dependencies['pg'];
  expect(pinned).toMatch(/^\d+\.\d+\.\d+$/);
  expect(readJson<Manifest>('node_modules/pg/package.json').version).toBe(pinned);
  const lock = readJson<{ packages: Record<string, Manifest> }>('package-lock.json');
  expect(lock.packages['']?.dependencies['pg']).toBe(pinned);
  expect(lock.packages['node_modules/pg']?.version).toBe(pinned);
});

/** Undocumented modules and members of pg, in code. */
const UNDOCUMENTED =
  /'pg\/lib|\b(readyForQuery|parsedStatements|submittedNamedStatements|_handle\w+|_txStatus)\b|\.connection\.stream\b|\bconnection: \{[^}]*stream/g;

function undocumentedIn(text: string): string[] {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '').match(UNDOCUMENTED) ?? [];
}

test('no other file uses undocumented members of pg', () => {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .map((path) => join('src', path))
    .filter((path) => /(?<!\.spec|\.d)\.ts$/.test(path));
  const users = files.filter((path) => undocumentedIn(readFileSync(join(ROOT, path), 'utf8')).length > 0);
  expect(users).toEqual([INTERNALS]);
});

test.each([
  `import { prepareValue } from 'pg/lib/utils.js';`,
  `(client as unknown as { connection: { stream: { destroy(): void } } }).connection`,
  `(client as any).connection.stream.destroy()`,
  `if ((client as Internals).readyForQuery) return;`,
])('the check finds such a use: %s', (code) => {
  expect(undocumentedIn(code)).not.toEqual([]);
});

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/* Merges follow .gitattributes in a clone without further configuration. */

const ROOT = join(import.meta.dirname, '../..');
const GENERATED = ['openapi.json', 'openapi.released.json', 'clients/typescript/src/generated/api.ts'];
const APP_MODULE = 'src/app.module.ts';

let clone: string;

beforeAll(() => {
  clone = mkdtempSync(join(tmpdir(), 'petstore-merges-'));
  for (const file of ['.gitattributes', APP_MODULE, ...GENERATED]) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(ROOT, file), join(clone, file));
  }
  git('init', '--quiet', '--initial-branch=main');
  commit();
});
afterAll(() => rmSync(clone, { recursive: true }));

function git(...words: string[]): string {
  const identity = ['user.name=Test', 'user.email=test@example.com', 'commit.gpgSign=false'];
  const command = [...identity.flatMap((setting) => ['-c', setting]), ...words];
  const env = { PATH: process.env['PATH'], GIT_CONFIG_NOSYSTEM: '1', HOME: clone };
  return execFileSync('git', command, { cwd: clone, env, encoding: 'utf8', stdio: 'pipe' });
}

function commit(): void {
  git('add', '--all');
  git('commit', '--quiet', '--message=Change');
}

function edit(file: string, change: (text: string) => string): void {
  const path = join(clone, file);
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  expect([file, changed === text]).toEqual([file, false]);
  writeFileSync(path, changed);
}

/** Adds a feature on a new branch, as `nest generate` and `npm run generate` do. */
function addFeature(name: string): void {
  git('switch', '--quiet', '--create', name.toLowerCase(), 'main');
  edit(APP_MODULE, (text) =>
    text
      .replace(/((?:^import .*\n)+)/m, `$1import { ${name}Module } from './${name.toLowerCase()}.module.js';\n`)
      .replace(/\n( {2}\],\n\}\))/, `\n    ${name}Module,\n$1`),
  );
  for (const file of GENERATED) edit(file, (text) => text.replaceAll('\n', ` ${name}\n`));
  commit();
}

test('a merge of two new features keeps both in the list of features, and generated files of the current branch', () => {
  addFeature('TestOrders');
  addFeature('TestVisits');
  const ours = GENERATED.map((file) => readFileSync(join(clone, file), 'utf8'));
  expect(() => git('merge', 'testorders')).toThrow();
  expect(git('diff', '--name-only', '--diff-filter=U').trim().split('\n').sort()).toEqual([...GENERATED].sort());
  expect(GENERATED.map((file) => readFileSync(join(clone, file), 'utf8'))).toEqual(ours);
  const module = readFileSync(join(clone, APP_MODULE), 'utf8');
  for (const name of ['TestOrders', 'TestVisits']) {
    expect(module.split(`    ${name}Module,\n`)).toHaveLength(2);
    expect(module).toContain(`import { ${name}Module } from`);
  }
  expect(module).not.toMatch(/^[<=>]{7}/m);
});

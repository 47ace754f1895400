import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

test('CommonJS can require every export of the package: no module awaits at its top level', () => {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { exports: object };
  const code = Object.keys(exports).map((path) => `require('petstore-service${path.slice(1)}')`);
  expect(code.length).toBeGreaterThan(7);
  const { status, stderr } = spawnSync(process.execPath, ['--eval', code.join(';')], { cwd: ROOT, encoding: 'utf8' });
  // Node 20 says that require(esm) is experimental.
  expect([status, stderr.replace(/^.*Warning.*$|^\(Use .*$/gm, '').trim()]).toEqual([0, '']);
});

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DIFFERENCES } from './differences.js';

const HERE = import.meta.dirname;

test('docs/extending.md lists exactly the intended differences', () => {
  const text = readFileSync(join(HERE, '../../docs/extending.md'), 'utf8');
  const table = text.split('### Differences from stock Nest')[1]?.split('\n### ')[0] ?? '';
  const rows = [...table.matchAll(/^\| (.+?) +\|.*\|$/gm)].map(([, name]) => name);
  expect(rows.slice(2)).toEqual(DIFFERENCES);
});

test('every intended difference is tested by a row or by the comparison', () => {
  const files = readdirSync(HERE).filter((file) => file.endsWith('.ts') && !file.startsWith('differences'));
  const code = files.map((file) => readFileSync(join(HERE, file), 'utf8')).join();
  expect(DIFFERENCES.filter((name) => !code.includes(`'${name}'`))).toEqual([]);
});

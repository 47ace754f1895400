/** The table of docs/dependencies.md, made from what each file `*.internals.ts` exports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceTable } from './settings-pages.js';

const ROOT = join(import.meta.dirname, '..');

function json(path) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}

/** The version that is installed, the range for Node.js, or a dash for a package that a project may add. */
function versionOf(dependency) {
  if (dependency === 'node') return json('package.json').engines.node.replaceAll('||', 'or');
  try {
    return json(`node_modules/${dependency}/package.json`).version;
  } catch {
    return '–';
  }
}

/** A page with the table of reaches between its two markers. */
export function withReachesTable(page, reaches) {
  const rows = reaches.map(({ dependency, touches, why, fastPath }) => [
    ...[dependency, versionOf(dependency), touches, why],
    fastPath === undefined ? 'the start fails' : `the fast path \`${fastPath}\` stays off`,
  ]);
  rows.sort(([a, , touched], [b, , others]) => (a + touched < b + others ? -1 : 1));
  return replaceTable(page, 'reaches', [['dependency', 'version', 'what is touched', 'why', 'if it differs'], ...rows]);
}

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const SOURCES = [
  'src',
  'libs',
  'docs',
  'clients/typescript/src',
  'clients/typescript/README.md',
  'clients/typescript/package.json',
  'migrations',
  'scripts/bundle.js',
  'package.json',
  'nest-cli.json',
  'tsconfig.json',
  'tsconfig.build.json',
];

/** The time of the newest file in a directory, or of a file, in ms. */
function newest(path) {
  const entry = statSync(path);
  if (!entry.isDirectory()) return entry.mtimeMs;
  return Math.max(entry.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** The time of the newest file that a build reads, in ms. */
export function newestSource() {
  return Math.max(...SOURCES.map((name) => newest(join(root, name))));
}

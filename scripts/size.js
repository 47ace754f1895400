/** Prints the size of the project; with `--base <revision>` also that of the revision. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const root = join(import.meta.dirname, '..');

function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 100_000_000 });
}

/** The paths and texts of the files that are counted: of a revision, or of the working tree without a revision. */
function filesOf(revision) {
  const list = revision
    ? ['ls-tree', '-r', '-z', '--name-only', revision]
    : ['ls-files', '-z', '-co', '--exclude-standard'];
  const deleted = revision ? [] : git('ls-files', '-z', '-d').split('\0');
  const paths = git(...list).split('\0');
  const counted = paths.filter(
    (path) => /^(src|libs|test|contract)\/|\.md$|^\.env\.example$/.test(path) && !deleted.includes(path),
  );
  const read = (path) => (revision ? git('show', `${revision}:${path}`) : readFileSync(join(root, path), 'utf8'));
  return counted.map((path) => ({ path, text: read(path) }));
}

/** The text of a page without its blocks of code. */
function proseOf(text) {
  return text.replace(/^ *```.*?^ *```$/gms, '');
}

function count(text, pattern) {
  return text.match(pattern)?.length ?? 0;
}

/** The room of a file: its library, or its folder in `src`. */
function roomOf(path) {
  return /^(libs\/[^/]+(?=\/)|src\/[^/]+(?=\/))/.exec(path)?.[0] ?? path.slice(0, path.lastIndexOf('/'));
}

/** Number of names that the package exports by its entries. */
function exportedNames(files) {
  const entries = files
    .filter(({ path }) => /^libs\/service\/(index|platform)\.ts$|^test\/kit\/index\.ts$/.test(path))
    .map(({ text }) => ({ text: text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '') }));
  const lists = entries.flatMap(({ text }) => [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)]);
  const declared = entries.map(({ text }) =>
    count(text, /^export (?:async )?(?:function|class|const|type|interface) \w/gm),
  );
  return lists.flatMap(([, names]) => names.split(',').filter((name) => name.trim() !== '')).length + sum(declared);
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function sizesOf(revision) {
  const files = filesOf(revision);
  const lines = (chosen) => sum(chosen.map(({ text }) => count(text, /\n/g)));
  const isTest = ({ path }) => /^(test|contract|libs\/[^/]+\/test)\//.test(path) || /\.spec\.ts$/.test(path);
  const production = files.filter((file) => /^(src|libs)\/.*\.ts$/.test(file.path) && !isTest(file));
  const rooms = {};
  for (const file of production) rooms[roomOf(file.path)] = (rooms[roomOf(file.path)] ?? 0) + lines([file]);
  const textOf = (name) => files.find(({ path }) => path === name)?.text ?? '';
  return {
    ...Object.fromEntries(Object.entries(rooms).sort()),
    'src and libs: lines': lines(production),
    'src and libs: files': production.length,
    'browser: lines': lines(files.filter(({ path }) => /^(src|libs)\/.*\.(js|css)$/.test(path))),
    'tests: lines': lines(files.filter((file) => isTest(file) && /\.(ts|js|cjs|mjs)$/.test(file.path))),
    settings: count(textOf('.env.example'), /^#?[A-Z][A-Z0-9_]*=/gm),
    'names of the package': exportedNames(files),
    decisions: count(textOf('docs/decisions.md'), /^- \*\*D\d+ /gm),
    'words of documents': sum(
      files.filter(({ path }) => path.endsWith('.md')).map(({ text }) => count(proseOf(text), /\S+/g)),
    ),
  };
}

const { base } = parseArgs({ options: { base: { type: 'string' } } }).values;
const before = base ? sizesOf(base) : {};
const now = sizesOf();
const cell = (value) => String(value ?? '-').padStart(10);
process.stdout.write(`${''.padEnd(34)}${base ? cell('before') : ''}${cell('now')}\n`);
for (const name of new Set([...Object.keys(now), ...Object.keys(before)])) {
  process.stdout.write(`${name.padEnd(34)}${base ? cell(before[name]) : ''}${cell(now[name] ?? 0)}\n`);
}

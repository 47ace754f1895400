/**
 * Changes the code of a folder in one place at a time, in a copy of the repository, and prints each change that no test notices:
 *
 *   node scripts/mutate.js <folder or file> [number] [--seed <number>] [--tests <pattern>]
 *
 * `--tests` is a regular expression of paths of tests; without it, those that call the service, and the unit tests of the
 * folder, without long ones. They run on PostgreSQL: that of TEST_DATABASE_URL, which saves two seconds each, or their own.
 * Tests of `operation/` and `faults/` run the built service, so each change is built before them.
 *
 * Not Stryker: its version 10 needs Node.js 22, and 9.6 took as long for a change (three seconds with unit tests alone), because
 * it, too, starts all modules of a test anew; and it is 170 packages.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');

/** Longest time in ms of the tests of one change. A change with which they take longer is noticed. */
const TIMEOUT_MS = 300_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, tests: { type: 'string' } },
});
const [folder, count = '10'] = positionals;
if (folder === undefined) {
  process.stderr.write('node scripts/mutate.js <folder or file> [number] [--seed <number>] [--tests <pattern>]\n');
  process.exit(1);
}
const ofProcesses = /\b(operation|faults)\//.exec(values.tests ?? '')?.[1];
const tests = values.tests ?? `${folder.replace(/\.ts$/, '')}.*spec|test/(api|api-keys|platform)/`;

const { SyntaxKind } = ts;
/** Operators, and what each becomes. */
const REPLACED = new Map([
  [SyntaxKind.LessThanToken, '<='],
  [SyntaxKind.LessThanEqualsToken, '<'],
  [SyntaxKind.GreaterThanToken, '>='],
  [SyntaxKind.GreaterThanEqualsToken, '>'],
  [SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [SyntaxKind.AmpersandAmpersandToken, '||'],
  [SyntaxKind.BarBarToken, '&&'],
  [SyntaxKind.PlusToken, '-'],
  [SyntaxKind.MinusToken, '+'],
]);

/** The changes of one node of the syntax tree: what each changes, and by what text. */
function* changesOf(node) {
  if (ts.isIfStatement(node) || ts.isConditionalExpression(node)) {
    const condition = node.expression ?? node.condition;
    yield [condition, `!(${condition.getText()})`];
  } else if (ts.isBinaryExpression(node) && REPLACED.has(node.operatorToken.kind)) {
    yield [node.operatorToken, REPLACED.get(node.operatorToken.kind)];
  } else if (ts.isExpressionStatement(node) && !/^(super|void super)\b/.test(node.getText())) {
    yield [node, ';'];
  } else if (ts.isThrowStatement(node)) {
    yield [node, ';'];
  } else if (ts.isReturnStatement(node) && node.expression) {
    yield [node.expression, 'undefined'];
  } else if (ts.isAwaitExpression(node)) {
    yield [node, node.expression.getText()];
  } else if (node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword) {
    if (!ts.isLiteralTypeNode(node.parent)) yield [node, String(node.kind === SyntaxKind.FalseKeyword)];
  }
}

/** All changes of a file. */
function mutationsOf(path) {
  const text = readFileSync(join(root, path), 'utf8');
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found = [];
  const visit = (node) => {
    for (const [place, by] of changesOf(node)) {
      if (place.getText() === by) continue;
      const start = place.getStart();
      const changed = text.slice(0, start) + by + text.slice(place.end);
      const line = source.getLineAndCharacterOfPosition(start).line + 1;
      found.push({ path, text, changed, name: `${path}:${line}: ${place.getText()} → ${by}`.replace(/\s+/g, ' ') });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomNumbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let value = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const listed = spawnSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
const files = listed.stdout
  .split('\0')
  .filter((path) => path !== '' && statSync(join(root, path), { throwIfNoEntry: false }));
const sources = files.filter((path) => path.startsWith(folder) && /^(src|libs)\/.*(?<!\.spec)\.ts$/.test(path));
const random = randomNumbers(Number(values.seed));
const chosen = sources
  .flatMap(mutationsOf)
  .map((mutation) => ({ mutation, order: random() }))
  .sort((a, b) => a.order - b.order)
  .slice(0, Number(count))
  .map(({ mutation }) => mutation);

// Jest compares real paths.
const copy = realpathSync(mkdtempSync(join(tmpdir(), 'petstore-mutate-')));
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
for (const path of files) cpSync(join(root, path), join(copy, path));
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

/** Runs the tests in the copy. Returns undefined if they pass, else the end of their output. */
function failure() {
  const others = [...(values.tests === undefined ? [] : ['postgresql-rest']), ...(ofProcesses ? [ofProcesses] : [])];
  const projects = ['unit', 'any-engine', 'postgresql', 'modules', ...others];
  const jest = ['node_modules/jest/bin/jest.js', '--selectProjects', ...projects];
  if (ofProcesses) {
    const build = spawnSync('npm', ['run', 'build'], { cwd: copy, encoding: 'utf8' });
    if (build.status !== 0) return build.stdout + build.stderr;
  }
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--experimental-vm-modules', ...jest, '--bail', '--forceExit', '--testTimeout=30000', '--testPathPatterns', tests],
    { cwd: copy, encoding: 'utf8', timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 100_000_000 },
  );
  return status === 0 ? undefined : (stdout + stderr).slice(-2_000);
}

const before = failure();
if (before !== undefined) {
  process.stderr.write(`The tests fail without a change:\n${before}\n`);
  process.exit(1);
}
let survivors = 0;
for (const { path, text, changed, name } of chosen) {
  writeFileSync(join(copy, path), changed);
  const survived = failure() === undefined;
  if (survived) survivors++;
  process.stdout.write(`${survived ? 'SURVIVED' : 'noticed '} ${name}\n`);
  writeFileSync(join(copy, path), text);
}
process.stdout.write(`${chosen.length - survivors} of ${chosen.length} changes noticed\n`);

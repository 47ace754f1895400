/**
 * Tries the newest releases of the frameworks within the ranges of package.json, in a temporary copy of the repository:
 *
 *   node scripts/try-newest.js
 *
 * Frameworks that belong together are one trial. A trial installs their newest releases, builds, and runs the specs of what they do not
 * document, the test of handler calls and the contract. The command fails if a trial fails, or the table of tested releases lacks one, and
 * says what to add. Needs the registry of npm; without it, the command says so and tries nothing.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** Longest time in ms of one command. */
const PATIENCE_MS = 600_000;
const TESTS = ['internals', 'test/platform/handler-calls', 'test/api/contract'];

const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const ranges = { ...devDependencies, ...dependencies };
// The command line of Nest is a tool, and no part of a service.
const nest = Object.keys(ranges).filter((name) => name.startsWith('@nestjs/') && name !== '@nestjs/cli');
const groups = [nest, ['typeorm'], ['pg'], ['express'], ['class-validator'], ['class-transformer']];

let copy;
process.once('exit', () => copy && rmSync(copy, { recursive: true, force: true }));
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => process.exit(1));

for (const group of groups) tryNewest(group);

function tryNewest(names) {
  const newest = new Map();
  for (const name of names) {
    const version = newestOf(name);
    if (version === undefined) return;
    if (version === installedOf(name)) say(`${name} ${version} is installed, and the newest.`);
    else newest.set(name, version);
  }
  if (newest.size === 0) return;
  for (const [name, version] of newest) say(`${name} ${installedOf(name)} is installed, the newest is ${version}.`);
  const failure = trial([...newest].map(([name, version]) => `${name}@${version}`));
  if (failure !== undefined) process.exitCode = 1;
  say(
    `${[...newest.keys()].join(', ')}: ${failure ?? 'the newest releases work, and are in the table of tested ones.'}`,
  );
}

/** The newest release of the major versions that package.json allows; undefined if the registry does not say it. */
function newestOf(name) {
  // A pinned version allows no other: any of its major version is tried.
  const range = ranges[name].replace(/^(?=\d)/, '^');
  const view = ['view', `${name}@${range}`, 'version', '--json', '--fetch-retries=0', '--fetch-timeout=20000'];
  const { status, stdout } = run(ROOT, 'npm', view);
  if (status === 0) return [JSON.parse(stdout)].flat().at(-1);
  const [, reason = 'it does not respond'] = /"summary": "(.*?)\.?"/.exec(stdout) ?? [];
  say(`LEFT OUT: ${name}. The registry of npm does not name its releases: ${reason}.`);
  return undefined;
}

function installedOf(name) {
  return JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version;
}

/** Says what fails with these packages, or what to add to the table of tested releases; undefined if all is well. */
function trial(packages) {
  copy = realpathSync(mkdtempSync(join(tmpdir(), 'petstore-newest-')));
  try {
    const leftOut = new Set(['.data', '.git', 'built', 'coverage', 'dist'].map((name) => join(ROOT, name)));
    // Links of node_modules/.bin stay relative.
    cpSync(ROOT, copy, { recursive: true, verbatimSymlinks: true, filter: (path) => !leftOut.has(path) });
    const steps = {
      'npm install': ['npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', ...packages]],
      'npm run build': ['npm', ['run', '--silent', 'build']],
      'a test': [process.execPath, ['scripts/test.js', 'unit,any-engine,postgresql', ...TESTS]],
    };
    for (const [step, [program, words]] of Object.entries(steps)) {
      const { status, stdout, stderr } = run(copy, program, words);
      if (status !== 0) return `${step} fails with the newest releases:\n${stdout}${stderr}`;
    }
    const ask = "import { untestedDependencies } from '#runtime'; console.log(untestedDependencies().join('; '));";
    const { status, stdout, stderr } = run(copy, process.execPath, ['--input-type=module', '--eval', ask]);
    if (status !== 0) return `the table of tested releases cannot be read:\n${stderr}`;
    const untested = stdout.trim();
    if (untested === '') return undefined;
    return `the tests pass. Add to libs/runtime/src/tested-releases.ts and docs/dependencies.md: ${untested}`;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function run(cwd, program, words) {
  // Without npm's variables of this command.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_(package|lifecycle|command)_?/.test(name)),
  );
  return spawnSync(program, words, { cwd, env, encoding: 'utf8', timeout: PATIENCE_MS, maxBuffer: 100_000_000 });
}

function say(text) {
  process.stdout.write(`${text}\n`);
}

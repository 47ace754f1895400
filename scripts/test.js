/**
 * Runs projects of jest.config.js: node scripts/test.js <project>[,<project>…] [pattern …] [options of Jest]
 *
 * A pattern selects the files whose path below this directory contains it. Jest matches the whole path, so that `pets`
 * would select every file of a checkout named `petstore`.
 */
import { spawnSync } from 'node:child_process';
import { isAbsolute, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const [projects = '', ...rest] = process.argv.slice(2);
const firstOption = rest.findIndex((argument) => argument.startsWith('-'));
const patterns = firstOption < 0 ? rest : rest.slice(0, firstOption);
const options = firstOption < 0 ? [] : rest.slice(firstOption);

/** The projects to run. `npm test` without a pattern leaves the files of `modules` and `…-rest` out; a pattern finds these, too. */
function selectedProjects() {
  const names = projects.split(',');
  if (patterns.length === 0) return names;
  const rest = names
    .flatMap((name) =>
      name === 'any-engine' || name === 'postgresql' ? ['modules', 'postgresql-rest'] : `${name}-rest`,
    )
    .filter((name) => ['unit-rest', 'modules', 'postgresql-rest', 'embedded-rest'].includes(name));
  return [...new Set([...names, ...rest])];
}

/** The regular expression that Jest gets for a pattern. */
function belowRoot(pattern) {
  if (isAbsolute(pattern)) return pattern;
  return `${root.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}/.*${pattern.replace(/^\.\//, '')}`;
}

/** Runs a script of Node; a failure ends this process with the same exit code. */
function run(script, args = [], env = {}) {
  const options = { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } };
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], options);
  if (status !== 0) process.exit(status ?? 1);
}

run('scripts/build-if-needed.js');
run(
  'node_modules/jest/bin/jest.js',
  [
    ...['--selectProjects', ...selectedProjects()],
    // These measure time and load the machine, so they run one after another. What a failed test leaves must not keep Jest running.
    ...(['faults', 'operation'].includes(projects) ? ['--runInBand', '--forceExit'] : []),
    ...(patterns.length > 0
      ? ['--testPathPatterns', ...patterns.map(belowRoot)]
      : ['--reporters', join(root, 'test/support/quiet-reporter.js'), '--reporters', 'summary']),
    ...options,
  ],
  { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning` },
);

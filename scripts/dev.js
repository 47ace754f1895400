/**
 * Serves, and restarts after each change of a source: `npm run dev`. The service starts at once, on the build, while the compiler
 * compiles everything for the first time; it starts again then if a source has changed meanwhile. Ctrl+C ends both programs.
 *
 * Not `nest start --watch`: it deletes the build, with the client that `/docs` offers, and starts after the first compilation.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { newestSource } from './newest-source.js';

const cwd = join(import.meta.dirname, '..');
const COMPILER = ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.build.json', '--watch', '--noEmitOnError'];
/** The compiler's line after it has compiled everything. After an error it writes nothing, and the service keeps running. */
const COMPILED = / Found 0 errors\. Watching for file changes\./;

const colours = process.stdout.isTTY ? ['--pretty'] : [];
const compiler = spawn(process.execPath, [...COMPILER, '--preserveWatchOutput', ...colours], {
  cwd,
  stdio: ['ignore', 'pipe', 'inherit'],
});
let service;
let isStale = false;
let isStopping = false;
/** Until the first compilation has ended: no source that is older has changed. */
let startedAt = Date.now();

function start() {
  isStale = false;
  service = spawn(process.execPath, ['dist/src/main.js'], { cwd, stdio: 'inherit' });
  service.once('exit', () => {
    service = undefined;
    if (isStopping) return;
    if (isStale) start();
    else process.stderr.write('The service has ended. It starts again after a change of a source.\n');
  });
}

function stop(signal) {
  isStopping = true;
  for (const program of [compiler, service]) program?.kill(signal);
}

compiler.stdout.on('data', (output) => {
  process.stdout.write(output);
  if (isStopping || !COMPILED.test(output)) return;
  const isCurrent = startedAt !== undefined && newestSource() < startedAt;
  startedAt = undefined;
  if (isCurrent) return;
  if (service === undefined) return start();
  isStale = true;
  service.kill();
});
compiler.once('exit', () => stop('SIGTERM'));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop(signal));
start();

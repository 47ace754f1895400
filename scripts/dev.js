/** Serves, and builds and restarts after each change of a source: `npm run dev`. Ctrl+C ends both programs. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const cwd = join(import.meta.dirname, '..');
const compiler = [
  'node_modules/typescript/bin/tsc',
  '--project',
  'tsconfig.build.json',
  '--watch',
  '--preserveWatchOutput',
  '--noEmitOnError',
];
const programs = [compiler, ['--watch', '--watch-preserve-output', 'dist/src/main.js']].map((args) =>
  spawn(process.execPath, args, { cwd, stdio: 'inherit' }),
);
for (const program of programs) {
  program.once('exit', () => {
    for (const other of programs) other.kill();
  });
}
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    for (const program of programs) program.kill(signal);
  });
}

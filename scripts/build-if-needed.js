/** Builds the service unless the build is newer than every source. A production install has no compiler, but a build. */
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasCompiler, INSTALL } from './check-compiler.js';
import { newestSource } from './newest-source.js';

const root = join(import.meta.dirname, '..');
const BUILT = join(root, 'dist/bundle/main.js');
const PAGES = join(root, 'dist/docs/guide.md');
const CLIENT = join(root, 'dist/client.tgz');
const isBuilt = [BUILT, PAGES, CLIENT].every(existsSync);
const isCurrent = isBuilt && statSync(BUILT).mtimeMs >= newestSource();

if (!isBuilt && !hasCompiler) {
  process.stderr.write(`petstore: There is no build and no compiler. Run '${INSTALL}'.\n`);
  process.exit(1);
}
if (hasCompiler && !isCurrent) {
  process.stderr.write('Building the service: half a minute to a minute …\n');
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 2, 2] });
  process.exit(status ?? 1);
}

/** Builds the service unless the build is newer than every source. A production install has no compiler, but a build. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const BUILT = join(root, 'dist/bundle/main.js');
const PAGES = join(root, 'dist/docs/guide.md');
const CLIENT = join(root, 'dist/client.tgz');
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

const hasCompiler = existsSync(join(root, 'node_modules/@nestjs/cli'));
const isBuilt = [BUILT, PAGES, CLIENT].every(existsSync);
const isCurrent = isBuilt && statSync(BUILT).mtimeMs >= Math.max(...SOURCES.map((name) => newest(join(root, name))));

if (!isBuilt && !hasCompiler) {
  process.stderr.write('petstore: There is no build and no compiler. Run: npm ci && npm run build\n');
  process.exit(1);
}
if (hasCompiler && !isCurrent) {
  process.stderr.write('Building …\n');
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 2, 2] });
  process.exit(status ?? 1);
}

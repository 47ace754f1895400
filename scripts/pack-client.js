/**
 * Builds the TypeScript client, and packs it as dist/client.tgz, which the service offers at /docs/client.tgz. The same
 * sources give the same bytes: npm leaves times, users and groups out of its packages.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');

mkdirSync(DIST, { recursive: true });
// Below dist, so that the file can be moved. Whoever reads the old one meanwhile has a whole one.
const directory = mkdtempSync(join(DIST, '.client-'));
try {
  const command = ['pack', '--silent', '--pack-destination', directory];
  execFileSync('npm', command, { cwd: join(ROOT, 'clients/typescript'), stdio: ['ignore', 'ignore', 'inherit'] });
  const [file] = readdirSync(directory);
  renameSync(join(directory, file), join(DIST, 'client.tgz'));
} finally {
  rmSync(directory, { recursive: true });
}

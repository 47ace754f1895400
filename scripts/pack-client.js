/**
 * Builds the TypeScript client, and packs it as dist/client.tgz, which the service offers at /docs/client.tgz. The same
 * sources give the same bytes: npm leaves times, users and groups out of its packages.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');

mkdirSync(DIST, { recursive: true });
// Below dist, so that the file can be moved. Whoever reads the old one meanwhile has a whole one.
const directory = mkdtempSync(join(DIST, '.client-'));
try {
  const command = ['pack', '--silent', '--pack-destination', directory];
  const options = { cwd: join(ROOT, 'clients/typescript'), stdio: ['ignore', 'pipe', 'inherit'] };
  const { status, stdout } = spawnSync('npm', command, options);
  if (status === 0) {
    const [file] = readdirSync(directory);
    renameSync(join(directory, file), join(DIST, 'client.tgz'));
  } else {
    // Where the compiler says what is wrong.
    process.stderr.write(stdout ?? '');
    process.stderr.write(
      'The client cannot be built. If it names a new operation, take that out until `npm run generate` has made its types.\n',
    );
    process.exitCode = 1;
  }
} finally {
  rmSync(directory, { recursive: true });
}

/** Copies the documents that the service shows into the build, which runs without the repository. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
for (const path of ['README.md', 'CHANGELOG.md', 'docs/guide.md']) {
  cpSync(join(root, path), join(root, 'dist', path));
}

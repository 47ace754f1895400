/** Copies the documents that the service shows, and the test kit reads, into the build, which runs without the repository. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
for (const path of ['README.md', 'CHANGELOG.md', 'docs/guide.md', 'docs/operating.md']) {
  cpSync(join(root, path), join(root, 'dist', path));
}

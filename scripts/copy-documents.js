/** Copies documents into the build, which runs without the repository: the service shows them, and the test kit reads them. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
for (const path of ['docs/guide.md', 'docs/operating.md']) {
  cpSync(join(root, path), join(root, 'dist', path));
}

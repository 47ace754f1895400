/** Copies documents and pages into the build, which runs without the repository: the service shows them, and the test kit reads them. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
cpSync(join(root, 'libs/docs-pages/src/browser'), join(root, 'dist/libs/docs-pages/src/browser'), { recursive: true });
for (const path of ['docs/guide.md', 'docs/operating.md']) {
  cpSync(join(root, path), join(root, 'dist', path));
}

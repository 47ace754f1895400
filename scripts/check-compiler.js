/** Ends with one line when the packages for development are not installed, before a command that needs them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What to do without a compiler. */
export const INSTALL = 'npm ci --include=dev && npm run build';

export const hasCompiler = existsSync(join(import.meta.dirname, '../node_modules/@nestjs/cli'));

if (process.argv[1] === import.meta.filename && !hasCompiler) {
  process.stderr.write(
    `petstore: The packages for development are not installed (npm leaves them out under NODE_ENV=production). Run '${INSTALL}'.\n`,
  );
  process.exit(1);
}

/** Ends with one line when the compiler is not installed, before a build. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What to do without a compiler. */
export const INSTALL = 'npm ci --include=dev && npm run build';

export const hasCompiler = existsSync(join(import.meta.dirname, '../node_modules/@nestjs/cli'));

if (process.argv[1] === import.meta.filename && !hasCompiler) {
  process.stderr.write(
    `petstore: The compiler is not installed: npm leaves it out under NODE_ENV=production. Run '${INSTALL}'.\n`,
  );
  process.exit(1);
}

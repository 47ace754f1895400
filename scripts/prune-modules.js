/**
 * Removes files from `node_modules` that Node.js never loads: about half of the size of the container image. The Dockerfile
 * runs it after `npm prune`. Never run it where you develop.
 *
 * Licences stay. test/ship/image.ship-spec.ts runs the service and its commands on the remaining files.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const modules = join(import.meta.dirname, '../node_modules');

if (existsSync(join(modules, 'typescript'))) {
  process.stderr.write(
    'petstore: This node_modules is one for development: TypeScript is there. Nothing was removed.\n',
  );
  process.exit(1);
}

/** Source maps, types, sources of TypeScript and Flow, documentation. */
const NOT_LOADED = /\.(?:map|[cm]?ts|flow|md|markdown|html)$/i;
const LICENCE = /^(?:licen[cs]e|copying|notice|copyright)/i;

/**
 * The same code in other module formats and for browsers, and published tests. A missing path ends this script with an
 * error, so that the list stays correct.
 */
const UNUSED = [
  '@electric-sql/pglite/dist/contrib',
  '@electric-sql/pglite/dist/pgcrypto.tar.gz',
  '@microsoft/tsdoc/lib',
  'bintrees/test',
  'class-transformer/bundles',
  'class-transformer/esm2015',
  'class-transformer/esm5',
  'class-validator/bundles',
  'class-validator/esm2015',
  'class-validator/esm5',
  'dayjs/esm',
  'libphonenumber-js/bundle',
  'libphonenumber-js/source',
  'rxjs/dist/bundles',
  'rxjs/dist/esm',
  'rxjs/dist/esm5',
  'rxjs/src',
  'swagger-ui-dist/swagger-ui-es-bundle-core.js',
  'swagger-ui-dist/swagger-ui-es-bundle.js',
  'swagger-ui-dist/swagger-ui.js',
  'typeorm/browser',
];

const missing = UNUSED.filter((path) => !existsSync(join(modules, path)));
if (missing.length > 0) {
  process.stderr.write(`petstore: scripts/prune-modules.js names what is not there: ${missing.join(', ')}\n`);
  process.exit(1);
}
UNUSED.forEach((path) => rmSync(join(modules, path), { recursive: true }));

for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true })) {
  if (entry.isFile() && NOT_LOADED.test(entry.name) && !LICENCE.test(entry.name)) {
    rmSync(join(entry.parentPath, entry.name));
  }
}

/**
 * Writes `dist/bundle/main.js` from the modules of the build, with a file for each library beside it: what production starts.
 * A start mostly loads files, and this program has a third fewer of them than `dist/src/main.js`.
 *
 * The bundle contains the modules of this repository and the packages of BUNDLED. All others stay in `node_modules`: packages of
 * a team share classes with some (Nest, TypeORM, rxjs), and tracing replaces functions of others (pg).
 */
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';

const MAIN = join(import.meta.dirname, '../dist/src/main.js');
const BUNDLE = join(import.meta.dirname, '../dist/bundle');

/** Packages of many files, of which a process may have two copies. */
const BUNDLED = ['@nestjs/swagger', 'es-toolkit', 'prom-client', '@opentelemetry/api', 'tdigest', 'bintrees'];
/** Functions that the bundler adds. */
const HELPERS = '@oxc-project/runtime';

const isPackage = (specifier) => /^[^./#]/.test(specifier);

/** Each module finds the files beside it by its URL, also when it is part of another file. */
const ownUrls = {
  name: 'own-urls',
  transform(code, file) {
    const url = `new URL(${JSON.stringify(relative(BUNDLE, file))}, import.meta.url).href`;
    return code.replaceAll('import.meta.url', url);
  },
};

const build = await rolldown({
  input: { main: MAIN },
  platform: 'node',
  tsconfig: false,
  external: (specifier) =>
    isPackage(specifier) && ![HELPERS, ...BUNDLED].some((name) => `${specifier}/`.startsWith(`${name}/`)),
  plugins: [ownUrls],
});
// Nest and the document show the names of classes, which the bundler would change where two modules have the same.
await build.write({ dir: BUNDLE, format: 'esm', keepNames: true, chunkFileNames: '[name].js' });
await build.close();

#!/usr/bin/env node
/**
 * Writes `dist/bundle/main.js` from the modules of the build in the working directory, with a file for each library beside it: what
 * production starts. A start mostly loads files, and this program has a third fewer of them than `dist/src/main.js`. Here it is a
 * step of `npm run build`; projects have it as the command `bundle-service`.
 *
 * The bundle contains the modules of the project, of the platform and of the packages of BUNDLED. All others stay in `node_modules`:
 * packages of a team share classes with some (Nest, TypeORM, rxjs), and tracing replaces functions of others (pg). A package of which
 * the importer has a copy of its own is in the bundle, too: from there another version would be found.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';

const MAIN = resolve('dist/src/main.js');
const BUNDLE = resolve('dist/bundle');

const { name: PLATFORM } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
/** The platform, and packages of many files, of which a process may have two copies. */
const BUNDLED = [PLATFORM, '@nestjs/swagger', 'es-toolkit', 'prom-client', '@opentelemetry/api', 'tdigest', 'bintrees'];
/** Functions that the bundler adds. */
const HELPERS = '@oxc-project/runtime';

const isPackage = (specifier) => /^[^./#]/.test(specifier);

/** The folder of a package as Node finds it from a folder; undefined where it is not installed. */
function homeOf(name, from) {
  const home = join(from, 'node_modules', name);
  if (existsSync(home)) return realpathSync(home);
  return from === dirname(from) ? undefined : homeOf(name, dirname(from));
}

/** Whether the bundle would find another copy of a package than the module that imports it. */
function hasOwnCopy(specifier, importer = MAIN) {
  const [name] = /^(@[^/]+\/)?[^/]+/.exec(specifier);
  const home = homeOf(name, dirname(importer));
  return home !== undefined && home !== homeOf(name, BUNDLE);
}

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
  external: (specifier, importer) =>
    isPackage(specifier) &&
    !hasOwnCopy(specifier, importer) &&
    ![HELPERS, ...BUNDLED].some((name) => `${specifier}/`.startsWith(`${name}/`)),
  plugins: [ownUrls],
});
// Nest and the document show the names of classes, which the bundler would change where two modules have the same.
await build.write({ dir: BUNDLE, format: 'esm', keepNames: true, chunkFileNames: '[name].js' });
await build.close();

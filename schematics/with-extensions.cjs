/*
 * Nest's own generators for `nest g`, whose files fit this repository: relative imports end in `.js`, as ECMAScript modules
 * need it, and parameters that a generated service does not use yet begin with `_`.
 *
 * From version 12 on @nestjs/schematics adds the extension itself. Version 12 needs Node.js 22, so it must wait for the end
 * of Node.js 20 here. The generators are CommonJS, because the Angular DevKit loads them with `require`.
 */
const { join } = require('node:path');
const { chain, externalSchematic } = require('@angular-devkit/schematics');
const { feature } = require('./feature/feature.cjs');

const RELATIVE_IMPORT = /(\bfrom ')(\.{1,2}\/[^']+?)(?:\.js)?(';)/g;
const UNUSED_PARAMETER = /\b((?:create|update)\w+Dto: )/g;

for (const name of ['controller', 'module', 'resource', 'service']) {
  module.exports[name] = (options) => chain([externalSchematic('@nestjs/schematics', name, options), adapt]);
}

module.exports.feature = (options) => chain([feature(options), adapt]);

/** Changes and formats the files that a generator has created or changed. A project without prettier gets them as they are. */
async function adapt(tree) {
  const prettier = await import('prettier').catch(() => undefined);
  for (const { kind, path } of tree.actions) {
    if (!path.endsWith('.ts') || !['c', 'o'].includes(kind)) continue;
    const withExtensions = tree.readText(path).replace(RELATIVE_IMPORT, '$1$2.js$3');
    const isNewService = kind === 'c' && path.endsWith('.service.ts');
    const text = isNewService ? withExtensions.replace(UNUSED_PARAMETER, '_$1') : withExtensions;
    if (prettier === undefined) {
      tree.overwrite(path, text);
      continue;
    }
    const filepath = join(process.cwd(), path);
    tree.overwrite(path, await prettier.format(text, { ...(await prettier.resolveConfig(filepath)), filepath }));
  }
}

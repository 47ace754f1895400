import { transformFile } from '@swc/core';
import { fileURLToPath } from 'node:url';

/*
 * Module hooks (https://nodejs.org/api/module.html#customization-hooks) with which Node imports this project's
 * TypeScript. In the tests Jest does this, but not in its global set-up.
 */

export async function resolve(specifier, context, next) {
  // `#name` of package.json means the sources of a library.
  const conditions = [...context.conditions, 'typescript'];
  try {
    return await next(specifier, { ...context, conditions });
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/^\..*\.js$/.test(specifier)) throw error;
    return next(specifier.replace(/\.js$/, '.ts'), context);
  }
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const { code } = await transformFile(fileURLToPath(url));
  return { format: 'module', source: code, shortCircuit: true };
}

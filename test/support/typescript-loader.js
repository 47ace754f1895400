import { transformFileSync } from '@swc/core';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/*
 * Module hooks (https://nodejs.org/api/module.html#customization-hooks) with which Node imports this project's
 * TypeScript. In the tests Jest does this, but not in its global set-up.
 */

export function resolve(specifier, context, next) {
  const isSource = /^\..*\.js$/.test(specifier) && !existsSync(new URL(specifier, context.parentURL));
  // `#name` of package.json means the sources of a library.
  const conditions = [...context.conditions, 'typescript'];
  return next(isSource ? specifier.replace(/\.js$/, '.ts') : specifier, { ...context, conditions });
}

export function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const { code } = transformFileSync(fileURLToPath(url));
  return { format: 'module', source: code, shortCircuit: true };
}

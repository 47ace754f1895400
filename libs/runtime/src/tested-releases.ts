import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * The dependencies of which a file `*.internals.ts` touches what they do not document, each with the releases for which the tests have
 * passed, or the beginnings of their numbers. `docs/dependencies.md` is the same table.
 */
export const TESTED_RELEASES: Readonly<Record<string, readonly string[]>> = {
  node: ['20', '22', '24', '26'],
  '@nestjs/common': ['12.5.0', '12.5.1'],
  '@nestjs/core': ['12.5.0', '12.5.1'],
  '@nestjs/platform-express': ['12.5.0', '12.5.1'],
  '@nestjs/swagger': ['12.0'],
  '@electric-sql/pglite': ['0.5'],
  'class-transformer': ['0.5'],
  'class-validator': ['0.15'],
  express: ['5.3'],
  pg: ['8.23.1'],
  'pg-protocol': ['1.16'],
  typeorm: ['1.1'],
};

/** The installed release of a dependency; undefined where its `package.json` is in no `node_modules` above this file. */
function installedRelease(name: string): string | undefined {
  if (name === 'node') return process.versions.node;
  for (const folder of createRequire(import.meta.url).resolve.paths(name) ?? []) {
    try {
      return (JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')) as { version: string }).version;
    } catch {
      // It is not in this folder.
    }
  }
  return undefined;
}

/** Whether the tests have passed for the installed release of a dependency; not where that release is not known. */
export function isTested(name: string): boolean {
  const release = installedRelease(name);
  return (TESTED_RELEASES[name] ?? []).some((tested) => `${release}.`.startsWith(`${tested}.`));
}

/** The dependencies for whose release the tests have not passed, such as `pg 8.24.0 (tested: 8.23.1)`. */
export function untestedDependencies(): string[] {
  return Object.entries(TESTED_RELEASES)
    .filter(([name]) => !isTested(name))
    .map(
      ([name, tested]) => `${name} ${installedRelease(name) ?? 'of an unknown release'} (tested: ${tested.join(', ')})`,
    );
}

import { readdir } from 'node:fs/promises';
import type { MigrationInterface } from 'typeorm';
import { StartupError } from '#errors';
import type { MigrationSource } from '#settings';

type MigrationClass = new () => MigrationInterface;

/**
 * Loads the classes of migrations.
 *
 * @throws StartupError for a directory that has no migration
 */
export async function loadMigrations(sources: readonly MigrationSource[]): Promise<MigrationClass[]> {
  const loaded = await Promise.all(
    sources.map(async (source) => (source instanceof URL ? classesIn(source) : [source])),
  );
  return loaded.flat();
}

async function classesIn(url: URL): Promise<MigrationClass[]> {
  // Without the slash, file names would be resolved against the parent directory.
  const directory = new URL(url.href.replace(/\/?$/, '/'));
  const files = (await readdir(directory).catch(() => [])).filter((file) => /^\d{13}-[a-z0-9-]+\.(js|ts)$/.test(file));
  if (files.length === 0) {
    throw new StartupError(
      `${directory.href} has no migrations: compiled files with names such as 1795219200000-create-orders.js.`,
    );
  }
  const modules = await Promise.all(
    files.sort().map(async (file) => (await import(new URL(file, directory).href)) as Record<string, unknown>),
  );
  return modules.flatMap((exports) => Object.values(exports)) as MigrationClass[];
}

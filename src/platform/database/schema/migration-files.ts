import { readdir } from 'node:fs/promises';
import type { MigrationInterface } from 'typeorm';
import type { MigrationSource } from '../../application.js';
import { StartupError } from '../../errors/startup-error.js';

type MigrationClass = new () => MigrationInterface;

/** The directory `migrations/` beside `src/`. Both are compiled to `dist/`, so the relative path is the same there. */
const DIRECTORY = new URL('../../../../migrations/', import.meta.url);

/**
 * Loads the classes of all migrations of this version: those in `migrations/`, and those that the application adds.
 *
 * @throws StartupError for a source or a file that has no migration, and for two migrations of one name
 */
export async function loadMigrations(added: readonly MigrationSource[]): Promise<MigrationClass[]> {
  const loaded = await Promise.all([DIRECTORY, ...added].map(classesOf));
  // A class may be given twice: itself, and in its directory.
  const classes = [...new Set(loaded.flat())];
  const names = classes.map(nameOf);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) {
    throw new StartupError(
      `Two migrations have the name ${twice}. Name one of them after another moment, and its file.`,
    );
  }
  return classes;
}

async function classesOf(source: MigrationSource): Promise<MigrationClass[]> {
  return source instanceof URL ? filesOf(source) : [checked(source, 'What is given as a migration')];
}

/** The classes that the files of a directory export. */
async function filesOf(url: URL): Promise<MigrationClass[]> {
  // Without the slash, file names would be resolved against the parent directory.
  const directory = new URL(url.href.replace(/\/?$/, '/'));
  const files = (await entriesOf(directory)).filter((file) => /^\d{13}-[a-z0-9-]+\.(js|ts)$/.test(file)).sort();
  if (files.length === 0) {
    throw new StartupError(
      `${directory.href} has no migrations: compiled files with names such as 1795219200000-create-orders.js.`,
    );
  }
  const modules = await Promise.all(
    files.map(async (file) => {
      const exports = (await import(new URL(file, directory).href)) as Record<string, unknown>;
      return Object.values(exports).map((value) => checked(value, `What ${file} exports`));
    }),
  );
  return modules.flat();
}

async function entriesOf(directory: URL): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    throw new StartupError(`The migrations of ${directory.href} cannot be read: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

/** @throws StartupError if the value is no migration class with its time in its name */
function checked(value: unknown, what: string): MigrationClass {
  const prototype =
    typeof value === 'function' ? (value.prototype as Partial<MigrationInterface> | undefined) : undefined;
  if (typeof prototype?.up !== 'function' || typeof prototype.down !== 'function') {
    throw new StartupError(`${what} must be a class with the methods up and down.`);
  }
  const migration = value as MigrationClass;
  if (!/\d{13}$/.test(nameOf(migration))) {
    throw new StartupError(
      `The name of the migration ${nameOf(migration)} must end in its time in ms, 13 digits, such as ` +
        `${migration.name}${Date.now()}.`,
    );
  }
  return migration;
}

/** The name of a migration in TypeORM and in the table `schema_migration`. */
function nameOf(migration: MigrationClass): string {
  return new migration().name ?? migration.name;
}

import { readdir } from 'node:fs/promises';
import type { MigrationInterface } from 'typeorm';

type MigrationClass = new () => MigrationInterface;

/** `migrations/` beside `src/`. The relative address is the same in `dist/`, where both are compiled to. */
const DIRECTORY = new URL('../../../../migrations/', import.meta.url);

/** The migrations of this version: the classes that the files in `migrations/` export, oldest first. */
export async function loadMigrations(): Promise<MigrationClass[]> {
  const files = (await readdir(DIRECTORY)).filter((file) => /^\d{13}-[a-z0-9-]+\.(js|ts)$/.test(file)).sort();
  const modules = await Promise.all(
    files.map((file) => import(new URL(file, DIRECTORY).href) as Promise<Record<string, MigrationClass>>),
  );
  return modules.flatMap((exports) => Object.values(exports));
}

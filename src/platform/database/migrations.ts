import { readdir } from 'node:fs/promises';
import type { MigrationInterface } from 'typeorm';

type MigrationClass = new () => MigrationInterface;

/** The same from src/ and from dist/src/. */
const DIRECTORY = new URL('../../../migrations/', import.meta.url);

/** The migrations of this code: the classes that the files in `migrations/` export, oldest first. */
export async function loadMigrations(): Promise<MigrationClass[]> {
  const files = (await readdir(DIRECTORY)).filter((file) => /^\d{13}-[a-z0-9-]+\.(js|ts)$/.test(file)).sort();
  const modules = await Promise.all(
    files.map((file) => import(new URL(file, DIRECTORY).href) as Promise<Record<string, MigrationClass>>),
  );
  return modules.flatMap((exports) => Object.values(exports));
}

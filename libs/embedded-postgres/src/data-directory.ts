import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { optional } from '#settings';

export const EMBEDDED_SETTINGS = {
  dataDir: {
    ...optional(
      'DATA_DIR',
      'a path of at most 70 bytes, without ~ and variables of a shell',
      'Directory of the embedded PostgreSQL.',
      // A file or a container expands neither, and would get a directory of that name.
      (path) => (/^~|\$\W?[A-Z]/.test(path) ? undefined : path),
      '.data',
      '.data',
    ),
    neverEmpty: true as const,
  },
};

/** The folder of the database in DATA_DIR. */
export const CLUSTER = 'postgres';

/** Most files that the engine has open: those of tables and indices in use. PostgreSQL's default is 1000. */
export const MAX_ENGINE_FILES = 200;

/** Whether a directory has a database. False only for certain: one that cannot be looked into may have one. */
export async function hasDatabase(dataDir: string): Promise<boolean> {
  const found: unknown = await stat(join(dataDir, CLUSTER)).catch(({ code }: NodeJS.ErrnoException) => code);
  return found !== 'ENOENT';
}

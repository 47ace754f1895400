import { chmod, mkdir, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { StartupError } from '#runtime';

/** The major version of PostgreSQL that PGlite is; another one cannot read its files. */
const MAJOR_VERSION = '18';

/** The folders of a database that may be empty, without `pg_`. Copies by git or to an object store lack empty folders. */
const MAY_BE_EMPTY = [
  ...['commit_ts', 'dynshmem', 'logical/mappings', 'logical/snapshots', 'notify', 'replslot', 'serial', 'snapshots'],
  ...['stat', 'stat_tmp', 'subtrans', 'tblspc', 'twophase', 'wal/archive_status', 'wal/summaries'],
];

/** Free space in bytes without which PostgreSQL does not start: it writes a segment of its log, and more. */
const MIN_FREE_BYTES = 64 * 1024 * 1024;

/** Whether a directory holds a database; false if it is missing or empty, and one may be made there. */
export async function isCluster(cluster: string): Promise<boolean> {
  const names = await readdir(cluster).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length > 0;
}

/**
 * Makes the files of an existing database fit for the engine: creates missing empty folders, and takes the rights of other
 * users, because the engine makes files that everybody may write.
 *
 * @throws StartupError with the remedy for a directory that the engine cannot open
 */
export async function prepareCluster(cluster: string): Promise<void> {
  const { uid, mode } = await stat(cluster);
  // The directory's owner could not open files that this process creates.
  if (uid !== process.geteuid?.())
    throw new StartupError(`The database '${cluster}' belongs to the user with the id ${uid}. Run this as that user.`);
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new StartupError(
      `'${cluster}' is not empty, and no database of PostgreSQL: it has no PG_VERSION. Move it away, or copy the whole database there.`,
    );
  });
  if (version.trim() !== MAJOR_VERSION)
    throw new StartupError(
      `The database '${cluster}' is of PostgreSQL ${version.trim()}, and this version of the service has ${MAJOR_VERSION}: ` +
        `with the version that wrote it, 'move' it to a PostgreSQL server.`,
    );
  if ((mode & 0o007) !== 0) await chmod(cluster, mode & 0o7770);
  for (const folder of MAY_BE_EMPTY) await mkdir(join(cluster, `pg_${folder}`), { recursive: true, mode: 0o700 });
}

/** What to do about a database in `dataDir` that does not open, in one line. */
export async function clusterAdvice(dataDir: string): Promise<string> {
  const space = await statfs(dataDir).catch(() => undefined);
  // Some file systems do not count files, and report 0 of them.
  if (space && (space.bavail * space.bsize < MIN_FREE_BYTES || (space.files > 0 && space.ffree === 0)))
    return 'Its disk is full: free 64 MiB, and start again. Nothing that was stored is lost.';
  return (
    'If it is on no local disk, move it to one. If this user may not read and write all its files, run chown. If it was copied while the service ran, copy it again while it is stopped. ' +
    'Otherwise it is damaged: restore a backup.'
  );
}

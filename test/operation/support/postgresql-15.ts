import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The directory of PostgreSQL 15's programs, as Debian 12 installs them.
 *
 * @throws Error when they are missing
 */
export function postgresql15(): string {
  const directory = '/usr/lib/postgresql/15/bin';
  if (!existsSync(join(directory, 'pg_basebackup'))) {
    throw new Error('PostgreSQL 15 is missing. Install it: apt-get install postgresql-15');
  }
  return directory;
}

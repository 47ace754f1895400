import { execFile } from 'node:child_process';
import { join } from 'node:path';

const FILES = join(import.meta.dirname, '../../../ops/partitioning');

/**
 * Runs a file of ops/partitioning by psql, as its page says.
 *
 * @returns what it prints to standard error: a line for each change that requests waited for
 * @throws Error with that when it fails
 */
export function runPartitioning(
  ownerUrl: string,
  file: 'partition.sql' | 'ahead.sql',
  values: Readonly<Record<string, string | number>>,
): Promise<string> {
  const variables = Object.entries(values).flatMap(([name, value]) => ['-v', `${name}=${value}`]);
  const env = { PATH: process.env.PATH };
  return new Promise((resolve, reject) =>
    execFile('psql', ['-X', ownerUrl, ...variables, '-f', join(FILES, file)], { env }, (error, _stdout, stderr) =>
      error ? reject(new Error(`${file}: ${stderr || error.message}`)) : resolve(stderr),
    ),
  );
}

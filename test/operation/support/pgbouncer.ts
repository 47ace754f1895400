import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startProgram } from '../../support/programs.js';

/** A running PgBouncer in front of one database. */
export interface PgBouncer {
  /** The URI of the database with PgBouncer's port. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts PgBouncer on a free port.
 *
 * @param url URI of the database with the service's role
 * @param settings the section `pgbouncer` of its configuration
 */
export async function startPgBouncer(
  url: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<PgBouncer> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const directory = mkdtempSync(join(tmpdir(), 'petstore-pgbouncer-'));
  const file = join(directory, 'pgbouncer.ini');
  const users = join(directory, 'users');
  const listenPort = await freePort();
  writeFileSync(users, `"${username}" "${password}"\n`, { mode: 0o644 });
  const own = {
    listen_addr: '127.0.0.1',
    listen_port: listenPort,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    ...settings,
  };
  const lines = Object.entries(own).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(file, `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) spawnSync('chown', ['-R', 'nobody', directory]);
  const { stop } = await startProgram('pgbouncer', isRoot ? ['-u', 'nobody', file] : [file], listenPort);
  return {
    url: `postgresql://${username}:${password}@127.0.0.1:${listenPort}${pathname}`,
    stop: async () => {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

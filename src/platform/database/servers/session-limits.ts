import type { ClientBase } from 'pg';
import { NoPrimaryError } from '../connections/connection-errors.js';
import { destroySocket, setProcessId } from '../statements/pg-internals.js';
import type { ServerHosts } from './server-hosts.js';

/** Time limits of a PostgreSQL session, in ms. `connection-settings.ts` sets their values. */
export interface SessionLimits {
  readonly statement_timeout: number;
  readonly idle_in_transaction_session_timeout: number;
  readonly lock_timeout?: number;
}

/** Options of `sessionPreparation`. */
export interface SessionOptions {
  readonly limits: SessionLimits;
  /** False behind a pooler in transaction mode, where a setting would reach another session. */
  readonly isOwnSession: boolean;
  /** Longest time in ms of the preparation. */
  readonly timeoutMs: number;
  /** Undefined if the server need not be a primary. */
  readonly hosts: ServerHosts | undefined;
}

/**
 * Makes the function that a pool calls with each new connection. It sets the limits by a statement, because poolers refuse
 * or ignore start-up parameters. It also makes sure that the server has not become a standby since it was chosen.
 *
 * A pooler without a free session accepts the connection, and its first statement waits. So requests wait for a saturated
 * pooler here, no longer than `timeoutMs`.
 */
export function sessionPreparation({ limits, isOwnSession, timeoutMs, hosts }: SessionOptions) {
  const sets = Object.entries(limits).map(([name, ms]) => `set_config('${name}', '${Number(ms)}', false)`);
  const columns = ['pg_is_in_recovery() AS standby', ...(isOwnSession ? ['pg_backend_pid() AS pid', ...sets] : [])];
  const text = `SELECT ${columns.join(', ')}`;
  return async (client: ClientBase): Promise<void> => {
    const timer = setTimeout(
      () => destroySocket(client, new Error(`timeout exceeded: no session of PostgreSQL within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const { rows } = await client.query<{ standby: boolean; pid?: number }>(text);
      const [{ standby, pid } = {}] = rows;
      if (pid !== undefined) setProcessId(client, pid);
      if (hosts !== undefined && standby !== false) {
        hosts.forget();
        throw new NoPrimaryError('the last one has become a standby', true);
      }
    } finally {
      clearTimeout(timer);
    }
  };
}

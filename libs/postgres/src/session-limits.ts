import type { ClientBase } from 'pg';
import { StartupError } from '#errors';
import { destroySocket, setProcessId } from '#internals';

/** Time limits of a PostgreSQL session, in ms. `connection-settings.ts` sets their values. */
export interface SessionLimits {
  readonly statement_timeout: number;
  readonly idle_in_transaction_session_timeout: number;
  readonly lock_timeout?: number;
}

/**
 * Makes the function that a pool calls with each new connection. It sets the limits by a statement, because poolers refuse
 * or ignore start-up parameters.
 *
 * A pooler without a free session accepts the connection, and its first statement waits. So requests wait for a saturated
 * pooler here, no longer than `timeoutMs`.
 *
 * @param isOwnSession false behind a pooler in transaction mode, where a setting would reach another session
 * @param timeoutMs longest time in ms of the preparation
 */
export function sessionPreparation(limits: SessionLimits, isOwnSession: boolean, timeoutMs: number) {
  const sets = Object.entries(limits).map(([name, ms]) => `set_config('${name}', '${Number(ms)}', false)`);
  const text = isOwnSession ? `SELECT pg_backend_pid() AS pid, ${sets.join(', ')}` : 'SELECT';
  return async (client: ClientBase): Promise<void> => {
    const timer = setTimeout(
      () => destroySocket(client, new Error(`timeout exceeded: no session of PostgreSQL within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const { rows } = await client.query<{ pid?: number }>(text);
      const pid = rows[0]?.pid;
      if (pid !== undefined) setProcessId(client, pid);
    } finally {
      clearTimeout(timer);
    }
  };
}

/**
 * Makes sure that the sessions of a pooler in transaction mode have time limits, which only a role keeps there.
 *
 * @param limits the largest accepted values
 * @throws StartupError that says what to change
 */
export async function checkLimitsOfRole(client: ClientBase, limits: SessionLimits): Promise<void> {
  const { rows } = await client.query<{ name: keyof SessionLimits; ms: number; role: string }>(
    'SELECT name, setting::int AS ms, quote_ident(current_user) AS role FROM pg_settings WHERE name = ANY ($1)',
    [Object.keys(limits)],
  );
  const missing = rows.filter(({ name, ms }) => ms === 0 || ms > (limits[name] as number));
  if (missing.length === 0) return;
  const found = missing.map(({ name, ms }) => `${name} is ${ms} ms`).join(' and ');
  const remedy = missing.map(({ name, role }) => `ALTER ROLE ${role} SET ${name} = ${limits[name]};`).join(' ');
  throw new StartupError(
    `with DATABASE_DIRECT_URL set it leads through a pooler in transaction mode, where only a role keeps limits, and ` +
      `${found} there. Run: ${remedy} Then let the pooler reconnect (RECONNECT).`,
  );
}

import type { ClientBase } from 'pg';
import { destroySocket } from '#internals';

/**
 * Makes the function that a pool calls with each new connection. It sets the limits by a statement, because poolers refuse
 * or ignore start-up parameters.
 *
 * A pooler without a free session accepts the connection, and its first statement waits. So requests wait for a saturated
 * pooler here, no longer than `timeoutMs`.
 *
 * @param limits settings of PostgreSQL, in ms
 * @param isOwnSession false behind a pooler in transaction mode, where a setting would reach another session
 * @param timeoutMs longest time in ms of the preparation
 */
export function sessionPreparation(limits: Readonly<Record<string, number>>, isOwnSession: boolean, timeoutMs: number) {
  const sets = Object.entries(limits).map(([name, ms]) => `set_config('${name}', '${Number(ms)}', false)`);
  const text = isOwnSession ? `SELECT ${sets.join(', ')}` : 'SELECT';
  return async (client: ClientBase): Promise<void> => {
    const timer = setTimeout(
      () => destroySocket(client, new Error(`timeout exceeded: no session of PostgreSQL within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      await client.query(text);
    } finally {
      clearTimeout(timer);
    }
  };
}

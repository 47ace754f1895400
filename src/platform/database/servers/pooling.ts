import type { Client } from 'pg';
import { processIdOf } from '../statements/pg-internals.js';
import { StartupError } from '../../errors/startup-error.js';

/**
 * The kind of pooler between a client and PostgreSQL. `none`: no pooler. `session`: each client has a session of its own.
 * `transaction`: each transaction of a client may run in another session.
 */
export type Pooling = 'none' | 'session' | 'transaction';

/** Rounds of queries by two clients in turn. In transaction mode one round is enough unless others use the pooler. */
const ROUNDS = 10;

const BACKEND = 'SELECT pg_backend_pid() AS pid';

/** Prepared by both clients under one name. */
const PREPARED = { name: 'petstore_pooling_check', text: BACKEND };

/** SQLSTATEs for prepared statements that exist already, or do not exist: the pooler has changed the session. */
const LOST = new Set<unknown>(['42P05', '26000']);

interface Backend {
  pid: number;
}

/**
 * Finds out the kind of pooler between a client and PostgreSQL. On connecting, PostgreSQL sends the id of the process that
 * serves the client; a pooler sends another id. In transaction mode, two clients that are connected at the same time are
 * served by the same process.
 *
 * @param client a connected client
 * @param second connects a second client; called only behind a pooler
 */
export async function detectPooling(client: Client, second: () => Promise<Client>): Promise<Pooling> {
  const first = await backendOf(client);
  if (first === processIdOf(client)) return 'none';
  const other = await second();
  for (let round = 0, current = first; round < ROUNDS; round++) {
    if ((await backendOf(other)) === current) return 'transaction';
    const next = await backendOf(client);
    if (next !== current) return 'transaction';
    current = next;
  }
  return 'session';
}

async function backendOf(client: Client): Promise<number | undefined> {
  return (await client.query<Backend>(BACKEND)).rows[0]?.pid;
}

/** The limits that sessions behind a pooler in transaction mode must have, in ms. */
export type RequiredLimits = Readonly<Record<'statement_timeout' | 'idle_in_transaction_session_timeout', number>>;

/**
 * Makes sure that a pooler in transaction mode keeps prepared statements, and that its sessions have time limits.
 *
 * @param clients two clients of the pooler
 * @param limits the largest accepted values
 * @throws StartupError that says what to change
 */
export async function checkTransactionMode(
  [first, second]: readonly [Client, Client],
  limits: RequiredLimits,
): Promise<void> {
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await first.query(PREPARED);
      await second.query(PREPARED);
    }
  } catch (error) {
    if (!LOST.has((error as { code?: unknown }).code)) throw error;
    throw new StartupError(
      'it leads through a pooler in transaction mode that loses prepared statements. Use its session mode, or PgBouncer ' +
        '1.21 or later with max_prepared_statements = 200.',
    );
  }
  const { rows } = await first.query<{ name: keyof RequiredLimits; ms: number; role: string }>(
    'SELECT name, setting::int AS ms, quote_ident(current_user) AS role FROM pg_settings WHERE name = ANY ($1)',
    [Object.keys(limits)],
  );
  const missing = rows.filter(({ name, ms }) => ms === 0 || ms > limits[name]);
  if (missing.length === 0) return;
  const found = missing.map(({ name, ms }) => `${name} is ${ms} ms`).join(' and ');
  const remedy = missing.map(({ name, role }) => `ALTER ROLE ${role} SET ${name} = ${limits[name]};`).join(' ');
  throw new StartupError(
    `it leads through a pooler in transaction mode, where only a role keeps limits, and ${found} there. ` +
      `Run: ${remedy} Then let the pooler reconnect (RECONNECT).`,
  );
}

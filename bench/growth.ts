import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createApiKey, displayedPrefix, hashApiKey } from '../libs/access/src/api-key-format.js';
import '../src/app.description.js';

/** Settings of PostgreSQL that these functions need. */
export const UPKEEP_SETTINGS = { shared_preload_libraries: 'pg_stat_statements' };

/** Longest time in ms until a server removes expired idempotency keys. It looks for them once a minute. */
const FIRST_REMOVAL_MS = 90_000;

/** The statements of background work, and patterns for their texts in `pg_stat_statements`. */
const STATEMENTS = {
  'usage of 1,000 counters': 'INSERT INTO key_usage %',
  'look-up of API keys': 'SELECT %WHERE key.hash = ANY %',
  'removal of 1,000 expired rows': 'WITH removed AS (%DELETE FROM idempotency_key %',
} as const;
type StatementName = keyof typeof STATEMENTS;

/** The cost of the statements of one kind in PostgreSQL. */
export interface Upkeep {
  readonly statement: StatementName;
  readonly count: number;
  readonly meanMs: number;
  readonly maxMs: number;
  /** Write-ahead log per statement, in KiB. */
  readonly walKiB: number;
}

/** The background work since the start of the server. */
export interface UpkeepReport {
  readonly statements: readonly Upkeep[];
  readonly updates: readonly { readonly table: string; readonly rows: number; readonly withoutIndex: number }[];
  /** Number of multixacts of all transactions. */
  readonly multixacts: number;
}

/**
 * Adds API keys to a database, each for its own client, and idempotency keys of these clients. Half of the idempotency
 * keys have expired.
 *
 * @returns the secrets of the API keys
 */
export async function grow(databaseUrl: string, keys: number, idempotencyRows: number): Promise<string[]> {
  const secrets = Array.from({ length: keys }, () => createApiKey('pets_'));
  await withClient(databaseUrl, async (client) => {
    await client.query(
      `CREATE EXTENSION pg_stat_statements; SET synchronous_commit = off; SET maintenance_work_mem = '1GB'`,
    );
    await client.query(
      `WITH client AS (
        INSERT INTO client (name) SELECT 'client ' || number FROM generate_series(1, $1) AS number RETURNING id
      ) INSERT INTO api_key (client_id, prefix, hash, scopes)
        SELECT id, prefix, hash, '{pets:read,pets:write}'
        FROM (SELECT id, row_number() OVER () AS number FROM client)
        JOIN unnest($2::text[], $3::bytea[]) WITH ORDINALITY AS digest (prefix, hash, number) USING (number)`,
      [keys, secrets.map(displayedPrefix), secrets.map(hashApiKey)],
    );
    // Rows are in the order of their ages, but their keys are random, as clients send them. Building an index of ten
    // million random keys at once is many times faster than row by row.
    const { rows: indexes } = await client.query<{ drop: string; create: string }>(
      `SELECT format('DROP INDEX %s', indexrelid::regclass) AS drop, pg_get_indexdef(indexrelid) AS create
        FROM pg_index WHERE indrelid = 'idempotency_key'::regclass AND NOT indisprimary
      UNION ALL
      SELECT format('ALTER TABLE idempotency_key DROP CONSTRAINT %I', conname),
        format('ALTER TABLE idempotency_key ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid))
        FROM pg_constraint WHERE conrelid = 'idempotency_key'::regclass AND contype = 'p'`,
    );
    for (const { drop } of indexes) await client.query(drop);
    await client.query(
      `INSERT INTO idempotency_key (client_id, key, fingerprint, result, created_at)
        SELECT clients[1 + number % cardinality(clients)], gen_random_uuid(), sha256(number::text::bytea), number,
          now() - interval '48 hours' * (1 - number / $1::float8)
        FROM generate_series(0, $1::int - 1) AS number,
          (SELECT array_agg(client_id) AS clients FROM api_key)`,
      [idempotencyRows],
    );
    for (const { create } of indexes) await client.query(create);
    await client.query('VACUUM ANALYZE client, api_key, idempotency_key');
    await client.query('CHECKPOINT');
  });
  return secrets;
}

/** Waits until a server removes expired idempotency keys. */
export async function untilRemoval(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    const removals = `SELECT FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid
      WHERE datname = current_database() AND query LIKE '${STATEMENTS['removal of 1,000 expired rows']}'`;
    for (const deadline = Date.now() + FIRST_REMOVAL_MS; (await client.query(removals)).rowCount === 0;) {
      if (Date.now() > deadline) throw new Error('The server removes no expired idempotency keys.');
      await sleep(100);
    }
  });
}

/** @throws Error when a statement of background work has not run */
export async function readUpkeep(databaseUrl: string): Promise<UpkeepReport> {
  return withClient(databaseUrl, async (client) => {
    const statements: Upkeep[] = [];
    for (const [statement, pattern] of Object.entries(STATEMENTS)) {
      const { rows } = await client.query<Omit<Upkeep, 'statement'>>(
        `SELECT calls::int AS count, mean_exec_time AS "meanMs", max_exec_time AS "maxMs",
            wal_bytes::float8 / calls / 1024 AS "walKiB"
          FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid
          WHERE datname = current_database() AND query LIKE $1 ORDER BY calls DESC LIMIT 1`,
        [pattern],
      );
      if (rows[0] === undefined) throw new Error(`No ${statement} in this run: it was too short.`);
      statements.push({ statement: statement as StatementName, ...rows[0] });
    }
    const { rows: updates } = await client.query<UpkeepReport['updates'][number]>(
      `SELECT relname AS table, n_tup_upd::int AS rows, n_tup_hot_upd::int AS "withoutIndex" FROM pg_stat_user_tables
        WHERE relname = 'key_usage'`,
    );
    await client.query('CHECKPOINT');
    const { rows: multixacts } = await client.query<{ made: number }>(
      `SELECT next_multixact_id::text::int - 1 AS made FROM pg_control_checkpoint()`,
    );
    return { statements, updates, multixacts: multixacts[0]?.made ?? NaN };
  });
}

async function withClient<Result>(databaseUrl: string, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

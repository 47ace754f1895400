import { Injectable, Logger } from '@nestjs/common';
import { type ApiError, serviceUnavailable } from '#errors';
import { Database, isCancelled, isCancelledWait, type Statement, type Transaction } from '#postgres';
import { BackgroundRemoval } from '#runtime';
import type { IdempotencyKey } from './idempotency-key.js';

/** The time after which a key expires, in SQL. The database's clock counts, which is the same for every instance. */
const LIFETIME = `interval '24 hours'`;

/** Largest number of keys that one statement removes, so that it is short. */
const REMOVAL_SIZE = 1_000;

/** The fingerprint and result that are stored with a key. */
export interface StoredResult {
  readonly fingerprint: Buffer;
  readonly result: string;
}

/**
 * Stores new keys; an expired key counts as new. Waits for another transaction that stores the same key. `created_at` of a new
 * key is `now()`, by its default: distributed engines refuse functions here whose result depends on the time or on settings.
 */
const UNLESS_KEPT = `ON CONFLICT (client_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, result = excluded.result, created_at = excluded.created_at
    WHERE excluded.created_at - idempotency_key.created_at >= ${LIFETIME}`;

/** The statements on keys, for the test of their query plans. */
export const IDEMPOTENCY_STATEMENTS = {
  FIND: {
    name: 'idempotency_key_find',
    text: `SELECT client_id, key, encode(fingerprint, 'base64'), result
      FROM unnest($1::bigint[], $2::text[]) AS sent (sent_client, sent_key)
      JOIN idempotency_key ON client_id = sent_client AND key = sent_key
      WHERE created_at > now() - ${LIFETIME}`,
  },
  STORE: {
    name: 'idempotency_key_store',
    text: `INSERT INTO idempotency_key (client_id, key, fingerprint, result) VALUES ($1, $2, $3, $4)
      ${UNLESS_KEPT} RETURNING result`,
  },
  // The age is compared again, because a key may be renewed while the statement waits for its lock. In a total order, so that
  // copies that an engine keeps by statements lose the same rows.
  REMOVE_EXPIRED: {
    name: 'idempotency_key_remove_expired',
    text: `DELETE FROM idempotency_key WHERE created_at <= now() - ${LIFETIME} AND (client_id, key) IN (
        SELECT client_id, key FROM idempotency_key WHERE created_at <= now() - ${LIFETIME}
        ORDER BY created_at, client_id, key LIMIT ${REMOVAL_SIZE}
      ) RETURNING 1`,
  },
} as const satisfies Record<string, Statement>;

/**
 * The text of a statement that stores different keys and inserts one row for each new key, all or nothing. Its values are
 * arrays: client ids, keys, fingerprints, and the columns. It returns client id, key and row id of the inserted rows.
 *
 * Keys are stored in a fixed order, so that the statements of two instances with common keys cannot deadlock.
 *
 * @param table a table with a generated column `id`
 * @param columns columns of the table, in the order of `types`
 * @param read the SQL of their values, from columns of these names and types
 */
export function insertOnceText(
  table: string,
  columns: readonly string[],
  types: readonly string[],
  read: string,
): string {
  const names = columns.join(', ');
  const values = types.map((type, index) => `$${index + 4}::${type}[]`);
  return `WITH sent AS (
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], ${values.join(', ')})
          AS sent (sent_client, sent_key, sent_fingerprint, ${names})
      ), stored AS (
        INSERT INTO idempotency_key (client_id, key, fingerprint, result)
        SELECT sent_client, sent_key, sent_fingerprint, nextval((SELECT pg_get_serial_sequence('${table}', 'id')))
        FROM sent ORDER BY sent_client, sent_key COLLATE "C"
        ${UNLESS_KEPT} RETURNING client_id AS stored_client, key AS stored_key, result AS stored_id
      ), inserted AS (
        INSERT INTO ${table} (id, ${names}) OVERRIDING SYSTEM VALUE
        SELECT stored_id::bigint, ${read} FROM stored
        JOIN sent ON sent_client = stored_client AND sent_key = stored_key
      ) SELECT stored_client, stored_key, stored_id FROM stored`;
}

/**
 * The 503 if a stored key cannot be read: it has expired at this moment, the database is unreachable, or an earlier request
 * with the key has not ended within the time limit of statements, because its commit waits for a standby.
 */
export function unsettled(cause?: Error): ApiError {
  const message = 'Whether the request was carried out before is not known. Send it again.';
  return serviceUnavailable('unsettled', message, { cause });
}

/** The error of a statement that only reads or stores a key: not `took_too_long`, because no request asks for it. */
function settle(error: unknown): never {
  throw isCancelled(error) ? unsettled(error) : error;
}

/**
 * The error of the changes of a request with a key. If they have waited for a row of another transaction, that may be an
 * earlier attempt; otherwise they are what takes too long.
 */
export function settleChange(error: unknown): never {
  throw isCancelledWait(error) ? unsettled(error) : error;
}

/** A text that identifies a key together with its client. */
export function nameOf(clientId: bigint | string, key: string): string {
  return `${clientId} ${key}`;
}

/** Stores and reads keys. A key expires after 24 h: from then on it is not found, be it removed already or not. */
@Injectable()
export class IdempotencyKeyRepository {
  constructor(private readonly database: Database) {}

  async find(keys: readonly IdempotencyKey[]): Promise<Map<string, StoredResult>> {
    const rows = await this.database
      .read<[clientId: string, key: string, fingerprint: string, result: string]>(IDEMPOTENCY_STATEMENTS.FIND, [
        keys.map(({ clientId }) => clientId),
        keys.map(({ value }) => value),
      ])
      .catch(settle);
    return new Map(
      rows.map(([clientId, key, fingerprint, result]) => [
        nameOf(clientId, key),
        { fingerprint: Buffer.from(fingerprint, 'base64'), result },
      ]),
    );
  }

  /** Stores a key in a transaction. False if a committed transaction has stored it already. */
  async store(transaction: Transaction, key: IdempotencyKey, { fingerprint, result }: StoredResult): Promise<boolean> {
    const values = [key.clientId, key.value, fingerprint, result];
    return (await transaction.run(IDEMPOTENCY_STATEMENTS.STORE, values).catch(settle)).length > 0;
  }
}

/** Removes expired keys in the background, the oldest first. While another instance removes the same keys, it leaves them to it. */
@Injectable()
export class ExpiredKeys extends BackgroundRemoval {
  constructor(database: Database) {
    super(new Logger(BackgroundRemoval.name), 'Expired idempotency keys', 60_000, async () => {
      return (await database.write(IDEMPOTENCY_STATEMENTS.REMOVE_EXPIRED, [])).length;
    });
  }
}

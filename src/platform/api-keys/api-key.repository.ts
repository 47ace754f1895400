import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../database/database.js';
import { displayedPrefix, hashApiKey } from './api-key-format.js';

/** An application that calls the service, with one key or several. */
export interface Client {
  readonly id: bigint;
  readonly name: string;
  /** Requests a minute, 0 for any number; null is RATE_LIMIT_PER_MINUTE. */
  readonly rateLimitPerMinute: number | null;
}

/** A key as the store knows it; the secret itself is nowhere. */
export interface StoredApiKey {
  readonly id: bigint;
  readonly client: Client;
  /** First characters of the secret, for display. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly revokedReason: string | null;
  /** Some seconds late, because usage is written in batches. */
  readonly lastUsedAt: Date | null;
  /** The key that this one was made to replace, and the one made to replace it. */
  readonly predecessorId: bigint | null;
  readonly successorId: bigint | null;
}

/** What is stored of a new key. */
export interface ApiKeyRecord {
  /** Name of the client, which is made when there is none. */
  readonly client: string;
  readonly scopes: readonly string[];
  readonly expiresAt: Date | null;
}

/** Narrows a list of keys; each condition that is given must hold. */
export interface ApiKeyFilter {
  /** Name of the client. */
  readonly client?: string | undefined;
  /** Neither revoked nor expired at `now`, and expired at this time. */
  readonly expiringBefore?: Date | undefined;
  /** Neither revoked nor expired at `now`, and neither made nor used since this time. */
  readonly unusedSince?: Date | undefined;
  readonly now: Date;
}

type Row = [
  id: string,
  clientId: string,
  clientName: string,
  rateLimitPerMinute: number | null,
  prefix: string,
  scopes: string[],
  createdAt: Date,
  expiresAt: Date | null,
  revokedAt: Date | null,
  revokedReason: string | null,
  lastUsedAt: Date | null,
  predecessorId: string | null,
  successorId: string | null,
];

/** Of `key` and `client`. */
const COLUMNS = `key.id, client.id, client.name, client.rate_limit_per_minute, key.prefix, key.scopes, key.created_at,
  key.expires_at, key.revoked_at, key.revoked_reason, key.last_used_at, key.predecessor_id,
  (SELECT successor.id FROM api_key successor WHERE successor.predecessor_id = key.id)`;
const SELECT = `SELECT ${COLUMNS} FROM api_key key JOIN client ON client.id = key.client_id`;

const FIND_BY_HASHES: Statement = {
  name: 'api_key_find_by_hashes',
  text: `SELECT ${COLUMNS}, key.hash FROM api_key key JOIN client ON client.id = key.client_id WHERE key.hash = ANY ($1)`,
};
const FIND_BY_REFERENCE: Statement = {
  name: 'api_key_find_by_reference',
  text: `${SELECT} WHERE key.id::text = $1 OR (length($1) >= 6 AND starts_with(key.prefix, $1)) OR key.hash = $2
    ORDER BY key.id`,
};
const LIST: Statement = {
  name: 'api_key_list',
  text: `${SELECT}
    WHERE ($1::text IS NULL OR client.name = $1)
      AND ($2::timestamptz IS NULL OR key.expires_at <= $2)
      AND ($3::timestamptz IS NULL OR coalesce(key.last_used_at, key.created_at) < $3)
      AND (($2::timestamptz IS NULL AND $3::timestamptz IS NULL)
        OR (key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > $4)))
    ORDER BY client.name, key.id`,
};
const EXISTS: Statement = { name: 'api_key_exists', text: 'SELECT EXISTS (SELECT FROM api_key)' };
// The empty update is what makes ON CONFLICT return the client that is there.
const INSERT: Statement = {
  name: 'api_key_insert',
  text: `WITH client AS (
      INSERT INTO client (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name
      RETURNING id, name, rate_limit_per_minute
    ), key AS (
      INSERT INTO api_key (client_id, prefix, hash, scopes, expires_at) SELECT id, $2, $3, $4, $5 FROM client
      ON CONFLICT (hash) DO NOTHING RETURNING *
    )
    SELECT ${COLUMNS} FROM key CROSS JOIN client`,
};
// Locked, so that a revocation of this moment comes before or after, and never in between.
const INSERT_SUCCESSOR: Statement = {
  name: 'api_key_insert_successor',
  text: `WITH predecessor AS (SELECT * FROM api_key WHERE id = $1 AND revoked_at IS NULL FOR UPDATE)
    INSERT INTO api_key (client_id, prefix, hash, scopes, expires_at, predecessor_id)
    SELECT client_id, $2, $3, scopes, $4, id FROM predecessor
    ON CONFLICT (predecessor_id) DO NOTHING RETURNING id::text`,
};
const EXPIRE: Statement = {
  name: 'api_key_expire',
  text: 'UPDATE api_key SET expires_at = least(expires_at, $2) WHERE id = $1',
};
const REVOKE: Statement = {
  name: 'api_key_revoke',
  text: `UPDATE api_key SET revoked_at = now(), revoked_reason = $2 WHERE id = $1 AND revoked_at IS NULL`,
};
const FIND_CLIENT: Statement = {
  name: 'client_find',
  text: 'SELECT id, name, rate_limit_per_minute FROM client WHERE name = $1',
};
const LIMIT_CLIENT: Statement = {
  name: 'client_limit',
  text: 'UPDATE client SET rate_limit_per_minute = $2 WHERE name = $1 RETURNING id, name, rate_limit_per_minute',
};

/** API keys and their clients in PostgreSQL. Whatever changes a key is told to every instance by triggers. */
@Injectable()
export class ApiKeyRepository {
  constructor(private readonly database: Database) {}

  /** The keys with these SHA-256 of their secrets, by the hash in base64; expired and revoked ones too. */
  async findByHashes(hashes: readonly string[]): Promise<Map<string, StoredApiKey>> {
    const values = hashes.map((hash) => Buffer.from(hash, 'base64'));
    const rows = await this.database.readPrimary<[...Row, hash: Buffer]>(FIND_BY_HASHES, [values]);
    return new Map(rows.map((row) => [row[13].toString('base64'), toStoredApiKey(row)]));
  }

  /** Keys that a person means by an id, by displayed characters (six at least), or by the whole secret. */
  async findByReference(reference: string): Promise<StoredApiKey[]> {
    const values = [reference, hashApiKey(reference)];
    return (await this.database.readPrimary<Row>(FIND_BY_REFERENCE, values)).map(toStoredApiKey);
  }

  /** Keys by client and age. */
  async list({ client, expiringBefore, unusedSince, now }: ApiKeyFilter): Promise<StoredApiKey[]> {
    return (await this.database.readPrimary<Row>(LIST, [client, expiringBefore, unusedSince, now])).map(toStoredApiKey);
  }

  async isEmpty(): Promise<boolean> {
    const rows = await this.database.readPrimary<[boolean]>(EXISTS, []);
    return rows[0]?.[0] === false;
  }

  /** Stores a key by its hash. A key that exists already stays as it is, and undefined is returned. */
  async insert(secret: string, { client, scopes, expiresAt }: ApiKeyRecord): Promise<StoredApiKey | undefined> {
    const values = [client, displayedPrefix(secret), hashApiKey(secret), scopes, expiresAt];
    const [row] = await this.database.write<Row>(INSERT, values);
    return row && toStoredApiKey(row);
  }

  /**
   * Stores a key of the same client with the same scopes, and lets its predecessor expire; both or neither.
   *
   * @returns the id of the new key; undefined when nothing was done, for the predecessor is revoked or has a successor
   */
  async replace(
    predecessor: bigint,
    { secret, expiresAt, overlapUntil }: { secret: string; expiresAt: Date | null; overlapUntil: Date },
  ): Promise<bigint | undefined> {
    return this.database.transaction(async (transaction) => {
      const successor = [predecessor, displayedPrefix(secret), hashApiKey(secret), expiresAt];
      const [row] = await transaction.run<[string]>(INSERT_SUCCESSOR, successor);
      if (row === undefined) return undefined;
      await transaction.run(EXPIRE, [predecessor, overlapUntil]);
      return BigInt(row[0]);
    });
  }

  /** Marks a key revoked; one that was revoked before keeps its time and reason. */
  async revoke(id: bigint, reason: string | null): Promise<void> {
    await this.database.write(REVOKE, [id, reason]);
  }

  async findClient(name: string): Promise<Client | undefined> {
    const [row] = await this.database.readPrimary<[string, string, number | null]>(FIND_CLIENT, [name]);
    return row && toClient(...row);
  }

  /** Gives a client a limit of its own; null takes it away. Undefined when there is no such client. */
  async limitClient(name: string, perMinute: number | null): Promise<Client | undefined> {
    const [row] = await this.database.write<[string, string, number | null]>(LIMIT_CLIENT, [name, perMinute]);
    return row && toClient(...row);
  }
}

function toStoredApiKey(row: readonly [...Row, ...unknown[]]): StoredApiKey {
  const [id, clientId, clientName, rateLimitPerMinute, prefix, scopes, createdAt, expiresAt, ...others] = row;
  const [revokedAt, revokedReason, lastUsedAt, predecessorId, successorId] = others;
  return {
    id: BigInt(id),
    client: toClient(clientId, clientName, rateLimitPerMinute),
    prefix,
    scopes,
    createdAt,
    expiresAt,
    revokedAt,
    revokedReason,
    lastUsedAt,
    predecessorId: predecessorId === null ? null : BigInt(predecessorId),
    successorId: successorId === null ? null : BigInt(successorId),
  };
}

function toClient(id: string, name: string, rateLimitPerMinute: number | null): Client {
  return { id: BigInt(id), name, rateLimitPerMinute };
}

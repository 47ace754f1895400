import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../database/database.js';

/** An application that calls the service, with one or more keys. */
export interface Client {
  readonly id: bigint;
  readonly name: string;
  /** Requests per minute; 0 means unlimited, null means RATE_LIMIT_PER_MINUTE. */
  readonly rateLimitPerMinute: number | null;
}

/** A stored key. The secret is not stored. */
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
  /** Some seconds behind, because usage is written every 5 s; null after 400 days without use. */
  readonly lastUsedAt: Date | null;
  /** The key that this one replaces, and the key that replaces this one. */
  readonly predecessorId: bigint | null;
  readonly successorId: bigint | null;
}

/** A key to store, with the stored parts of its secret. */
export interface ApiKeyRecord {
  /** Name of the client, which is created if it does not exist. */
  readonly client: string;
  /** The first characters of the secret, for display. */
  readonly prefix: string;
  /** The SHA-256 of the secret, 32 bytes. */
  readonly hash: Buffer;
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
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

/** The last call of a key in `key_usage`, for a query that names its table `key`. */
const LAST_USED = `(SELECT max(last_call_at) FROM key_usage WHERE key_id = key.id AND day =
    (SELECT max(day) FROM key_usage WHERE key_id = key.id))`;

/** Columns of a `Row`, for a query that names its tables `key` and `client`. */
const COLUMNS = `key.id, client.id, client.name, client.rate_limit_per_minute, key.prefix, key.scopes, key.created_at,
  key.expires_at, key.revoked_at, key.revoked_reason, ${LAST_USED}, key.predecessor_id,
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
  text: `${SELECT} WHERE $1::text IS NULL OR client.name = $1 ORDER BY client.name, key.id`,
};
const EXISTS: Statement = { name: 'api_key_exists', text: 'SELECT EXISTS (SELECT FROM api_key)' };
// The update changes nothing, but with DO NOTHING the statement would not return an existing client.
const INSERT: Statement = {
  name: 'api_key_insert',
  text: `WITH client AS (
      INSERT INTO client (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name
      RETURNING id, name, rate_limit_per_minute
    ), key AS (
      INSERT INTO api_key (client_id, prefix, hash, scopes, created_at, expires_at)
      SELECT id, $2, $3, $4, $5, $6 FROM client
      ON CONFLICT (hash) DO NOTHING RETURNING *
    )
    SELECT ${COLUMNS} FROM key CROSS JOIN client`,
};
// FOR UPDATE: a concurrent revocation happens entirely before or entirely after.
const REPLACE: Statement = {
  name: 'api_key_replace',
  text: `WITH predecessor AS (
      SELECT * FROM api_key WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4) FOR UPDATE
    ), successor AS (
      INSERT INTO api_key (client_id, prefix, hash, scopes, created_at, expires_at, predecessor_id)
      SELECT client_id, $2, $3, scopes, $4, $5, id FROM predecessor
      ON CONFLICT (predecessor_id) DO NOTHING RETURNING id, predecessor_id
    )
    UPDATE api_key SET expires_at = least(expires_at, $6) FROM successor WHERE api_key.id = successor.predecessor_id
    RETURNING successor.id::text`,
};
const REVOKE: Statement = {
  name: 'api_key_revoke',
  text: `UPDATE api_key SET revoked_at = $2, revoked_reason = $3 WHERE id = $1 AND revoked_at IS NULL`,
};
const LIMIT_CLIENT: Statement = {
  name: 'client_limit',
  text: 'UPDATE client SET rate_limit_per_minute = $2 WHERE name = $1 RETURNING id, name, rate_limit_per_minute',
};

/** API keys and their clients in PostgreSQL, without the secrets. Triggers notify all instances of every change. */
@Injectable()
export class ApiKeyRepository {
  constructor(private readonly database: Database) {}

  /** The keys whose secrets have these SHA-256 hashes, by the hash in base64. Includes expired and revoked keys. */
  async findByHashes(hashes: readonly string[]): Promise<Map<string, StoredApiKey>> {
    const values = hashes.map((hash) => Buffer.from(hash, 'base64'));
    const rows = await this.database.readPrimary<[...Row, hash: Buffer]>(FIND_BY_HASHES, [values]);
    return new Map(rows.map((row) => [row[13].toString('base64'), toStoredApiKey(row)]));
  }

  /** The keys with this id or these first characters (at least six), or with a secret of this SHA-256. */
  async findByReference(reference: string, hash: Buffer): Promise<StoredApiKey[]> {
    return (await this.database.readPrimary<Row>(FIND_BY_REFERENCE, [reference, hash])).map(toStoredApiKey);
  }

  /** Keys ordered by client name and id: of one client, or all. */
  async list(client?: string): Promise<StoredApiKey[]> {
    return (await this.database.readPrimary<Row>(LIST, [client])).map(toStoredApiKey);
  }

  async isEmpty(): Promise<boolean> {
    const rows = await this.database.readPrimary<[boolean]>(EXISTS, []);
    return rows[0]?.[0] === false;
  }

  /** Stores a key. Returns undefined, and changes no key, when one with this hash already exists. */
  async insert(key: ApiKeyRecord): Promise<StoredApiKey | undefined> {
    const { client, prefix, hash, scopes, createdAt, expiresAt } = key;
    const [row] = await this.database.write<Row>(INSERT, [client, prefix, hash, scopes, createdAt, expiresAt]);
    return row && toStoredApiKey(row);
  }

  /**
   * Stores a key with the client and scopes of its predecessor, and makes the predecessor expire at `overlapUntil`.
   *
   * @returns the id of the new key; undefined, with nothing changed, when the predecessor is revoked, expired or has a
   * successor
   */
  async replace(
    predecessor: bigint,
    { prefix, hash, createdAt, expiresAt }: Omit<ApiKeyRecord, 'client' | 'scopes'>,
    overlapUntil: Date,
  ): Promise<bigint | undefined> {
    const values = [predecessor, prefix, hash, createdAt, expiresAt, overlapUntil];
    const [row] = await this.database.write<[string]>(REPLACE, values);
    return row && BigInt(row[0]);
  }

  /** Marks a key as revoked. A key that is already revoked keeps its time and reason. */
  async revoke(id: bigint, revokedAt: Date, reason: string | null): Promise<void> {
    await this.database.write(REVOKE, [id, revokedAt, reason]);
  }

  /** Sets a client's own rate limit, or removes it with null. Undefined when no client has this name. */
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

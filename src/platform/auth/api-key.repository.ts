import { Injectable } from '@nestjs/common';
import { timingSafeEqual } from 'node:crypto';
import { Database, type Statement } from '../database/database.js';
import { displayedPrefix, hashApiKey } from './api-key-format.js';

/** A key as the store knows it; the secret itself is nowhere. */
export interface StoredApiKey {
  readonly id: bigint;
  readonly name: string;
  /** First characters of the secret, for display. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
}

type Row = [string, string, string, string[], Date, Date | null, Date | null, Date | null];

const COLUMNS = 'id, name, prefix, scopes, created_at, expires_at, revoked_at, last_used_at';

const FIND_BY_HASH: Statement = {
  name: 'api_key_find_by_hash',
  text: `SELECT ${COLUMNS}, hash FROM api_key WHERE hash = $1`,
};
const LIST: Statement = { name: 'api_key_list', text: `SELECT ${COLUMNS} FROM api_key ORDER BY id` };
const EXISTS: Statement = { name: 'api_key_exists', text: 'SELECT EXISTS (SELECT FROM api_key)' };
const INSERT: Statement = {
  name: 'api_key_insert',
  text: `INSERT INTO api_key (name, prefix, hash, scopes, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (hash) DO NOTHING RETURNING ${COLUMNS}`,
};
const FIND_BY_REFERENCE: Statement = {
  name: 'api_key_find_by_reference',
  text: `SELECT ${COLUMNS} FROM api_key WHERE id::text = $1 OR (length($1) >= 6 AND starts_with(prefix, $1)) ORDER BY id`,
};
const REVOKE: Statement = {
  name: 'api_key_revoke',
  text: `UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING ${COLUMNS}`,
};

/** API keys in PostgreSQL. */
@Injectable()
export class ApiKeyRepository {
  constructor(private readonly database: Database) {}

  /** The key with this secret's SHA-256, expired and revoked ones too. */
  async findByHash(hash: Buffer): Promise<StoredApiKey | undefined> {
    const [row] = await this.database.write<[...Row, Buffer]>(FIND_BY_HASH, [hash]);
    return row && timingSafeEqual(row[8], hash) ? toStoredApiKey(row) : undefined;
  }

  async list(): Promise<StoredApiKey[]> {
    return (await this.database.write<Row>(LIST, [])).map(toStoredApiKey);
  }

  async isEmpty(): Promise<boolean> {
    const rows = await this.database.write<[boolean]>(EXISTS, []);
    return rows[0]?.[0] === false;
  }

  /** Stores a key by its hash. A key that exists already stays as it is, and undefined is returned. */
  async insert(
    secret: string,
    key: { name: string; scopes: readonly string[]; expiresAt: Date | null },
  ): Promise<StoredApiKey | undefined> {
    const values = [key.name, displayedPrefix(secret), hashApiKey(secret), key.scopes, key.expiresAt];
    const [row] = await this.database.write<Row>(INSERT, values);
    return row && toStoredApiKey(row);
  }

  /** Keys that a person means by an id or by the displayed characters. */
  async findByReference(reference: string): Promise<StoredApiKey[]> {
    return (await this.database.write<Row>(FIND_BY_REFERENCE, [reference])).map(toStoredApiKey);
  }

  /** Marks a key revoked; one that was revoked before keeps its time. */
  async revoke(id: bigint): Promise<StoredApiKey | undefined> {
    const [row] = await this.database.write<Row>(REVOKE, [id]);
    return row && toStoredApiKey(row);
  }
}

function toStoredApiKey(row: readonly [...Row, ...unknown[]]): StoredApiKey {
  const [id, name, prefix, scopes, createdAt, expiresAt, revokedAt, lastUsedAt] = row;
  return { id: BigInt(id), name, prefix, scopes, createdAt, expiresAt, revokedAt, lastUsedAt };
}

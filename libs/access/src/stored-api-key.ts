import { epochOf, timeOf } from '#postgres';
import type { Caller } from './caller.js';

/** The `prefix` of an entry without a key: of a client that an `Authenticator` knows. Its usage and revocation are stored here. */
export const NO_KEY = '(no key)';

/**
 * A stored key. The secret is not stored.
 *
 * PostgreSQL's `-infinity`, and times that no Date can hold, are the first and last time that one can. A time that cannot
 * be read is an invalid Date, never null.
 */
export interface StoredApiKey {
  readonly id: bigint;
  /** An application that calls the service, with one or more keys. */
  readonly client: { readonly id: bigint; readonly name: string };
  /** First characters of the secret, for display. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  /** Null for a key without an end, which PostgreSQL's `infinity` is, too. */
  readonly expiresAt: Date | null;
  /** Whatever it is, the key is revoked unless it is null. */
  readonly revokedAt: Date | null;
  readonly revokedReason: string | null;
  /**
   * Some seconds behind, because usage is written every 5 s; null after 400 days without use, and in the key of a request: its
   * look-up reads no usage.
   */
  readonly lastUsedAt: Date | null;
  /** The key that this one replaces, and the key that replaces this one. */
  readonly predecessorId: bigint | null;
  readonly successorId: bigint | null;
}

/** A key with which requests are sent, or what stands for it. */
export interface VerifiedKey extends StoredApiKey {
  /** Who sends them: one frozen object for all requests with an API key. */
  readonly caller: Caller;
}

/** A row of a query for `KEY_COLUMNS`. */
export type KeyRow = [
  id: string,
  clientId: string,
  clientName: string,
  prefix: string,
  scopes: string,
  createdAt: string,
  expiresAt: string | null,
  revokedAt: string | null,
  revokedReason: string | null,
  lastUsedAt: string | null,
  predecessorId: string | null,
  successorId: string | null,
];

/** The last call of a key in `key_usage`, for a query that names its table `key`. Of partitions by day it reads the last ones. */
const LAST_USED = `(SELECT last_call_at FROM key_usage WHERE key_id = key.id ORDER BY day DESC, last_call_at DESC LIMIT 1)`;

/** Columns for a query that names its tables `key` and `client`. */
export const KEY_COLUMNS = columns(epochOf(LAST_USED));

/** The columns of a key with which requests are sent. */
export const VERIFIED_COLUMNS = columns('NULL::text');

function columns(lastUsed: string): string {
  return `key.id, client.id, client.name, key.prefix, to_json(key.scopes)::text, ${epochOf('key.created_at')},
    ${epochOf('key.expires_at')}, ${epochOf('key.revoked_at')}, key.revoked_reason, ${lastUsed}, key.predecessor_id,
    (SELECT successor.id FROM api_key successor WHERE successor.predecessor_id = key.id)`;
}

/** The key of a row; further columns are ignored. */
export function toStoredApiKey(row: readonly [...KeyRow, ...unknown[]]): StoredApiKey {
  const [id, clientId, clientName, prefix, scopes, createdAt, expiresAt, ...others] = row;
  const [revokedAt, revokedReason, lastUsedAt, predecessorId, successorId] = others;
  return {
    id: BigInt(id),
    client: { id: BigInt(clientId), name: clientName },
    prefix,
    scopes: JSON.parse(scopes) as string[],
    createdAt: timeOf(createdAt),
    expiresAt: expiresAt === 'Infinity' ? null : timeOrNull(expiresAt),
    revokedAt: timeOrNull(revokedAt),
    revokedReason,
    lastUsedAt: timeOrNull(lastUsedAt),
    predecessorId: predecessorId === null ? null : BigInt(predecessorId),
    successorId: successorId === null ? null : BigInt(successorId),
  };
}

function timeOrNull(epoch: string | null): Date | null {
  return epoch === null ? null : timeOf(epoch);
}

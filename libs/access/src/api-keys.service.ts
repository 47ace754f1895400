import { Injectable } from '@nestjs/common';
import { hash } from 'node:crypto';
import { isScope } from '#operations';
import { Database, type Statement } from '#postgres';
import { Clock, printable, StartupError } from '#runtime';
import { Application } from '#settings';
import { ApiKeyRequestError, createApiKey, displayedPrefix, hashApiKey, hasWrongChecksum } from './api-key-format.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { CLIENT_NAME_RULE, clientNameOf, isClientName } from './caller.js';
import { KEY_COLUMNS, type KeyRow, NO_KEY, type StoredApiKey, toStoredApiKey } from './stored-api-key.js';

/** Longest reason for a revocation, in characters. */
const MAX_REASON_LENGTH = 500;

/** Longest text that a message repeats: shorter than any key, and as long as the stored beginning of one. */
const MAX_SHOWN_LENGTH = 12;

const SELECT = `SELECT ${KEY_COLUMNS} FROM api_key key JOIN client ON client.id = key.client_id`;
/** $1: an id, or a beginning of at least 6 characters, $2: its hash. */
const FIND_BY_REFERENCE: Statement = {
  name: 'api_key_find_by_reference',
  text: `${SELECT} WHERE key.id::text = $1 OR key.hash = $2 OR (length($1) >= 6 AND starts_with(key.prefix, $1))
    ORDER BY key.id`,
};
const LIST: Statement = {
  name: 'api_key_list',
  text: `${SELECT} WHERE $1::text IS NULL OR client.name = $1 ORDER BY client.name, key.id`,
};
const EXISTS: Statement = { name: 'api_key_exists', text: 'SELECT EXISTS (SELECT 1 FROM api_key)::text' };
// The update changes nothing, but with DO NOTHING the statement would not return an existing client.
const INSERT: Statement = {
  name: 'api_key_insert',
  text: `WITH client AS (
      INSERT INTO client (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name
      RETURNING id, name
    ), key AS (
      INSERT INTO api_key (client_id, prefix, hash, scopes, created_at, expires_at)
      SELECT id, $2, $3, $4, $5, $6 FROM client
      ON CONFLICT (hash) DO NOTHING RETURNING *
    )
    SELECT ${KEY_COLUMNS} FROM key CROSS JOIN client`,
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

/** Options of a new key. */
export interface NewApiKey {
  /** Name of the client, 1 to 255 printable characters. The client is created if it does not exist. */
  client: string;
  /** Scopes of the key; by default those of the application. */
  scopes?: readonly string[] | undefined;
  /** Time from which the key is refused; never by default. */
  expiresAt?: Date | undefined;
}

/** A new key and its secret, which is not stored and cannot be shown again. */
export interface IssuedApiKey {
  readonly key: StoredApiKey;
  readonly secret: string;
}

/**
 * Creates, lists, rotates and revokes API keys, as the command `keys` does. A module that offers it decides who may ask. A change
 * takes effect in every process within a second; a new key at once.
 *
 * A `reference` to a key is its id, the whole key, or at least six of its first characters. At most twelve are stored: a longer
 * beginning names no key.
 */
@Injectable()
export class ApiKeysService {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly verifier: ApiKeyVerifier,
    private readonly clock: Clock,
    private readonly application: Application,
  ) {}

  /**
   * Creates a key.
   *
   * @throws ApiKeyRequestError when the client's name or a scope is invalid
   */
  async create({ client, scopes = this.application.defaultScopes, expiresAt }: NewApiKey): Promise<IssuedApiKey> {
    if (!isClientName(client)) throw new ApiKeyRequestError(CLIENT_NAME_RULE);
    const wrongScope = scopes.find((scope) => !isScope(scope));
    if (wrongScope !== undefined) {
      throw new ApiKeyRequestError(
        `'${wrongScope}' is no scope; a scope looks like ${this.application.defaultScopes[0]}`,
      );
    }
    const secret = createApiKey(this.application.product.apiKeyPrefix);
    const [row] = await this.insert(client, secret, [...new Set(scopes)], expiresAt);
    return { key: toStoredApiKey(row as KeyRow), secret };
  }

  /**
   * The key of a bearer token, for code that is not behind the platform's guard, such as a WebSocket gateway. Counts no
   * call and checks no scope.
   *
   * @throws ApiError 401 for an unknown, revoked or expired key; 503 while the database is unreachable
   */
  async verify(token: string): Promise<StoredApiKey> {
    return this.verifier.verify(token);
  }

  /** Keys ordered by client name and id: of one client, or all. */
  async list({ client }: { client?: string | undefined } = {}): Promise<StoredApiKey[]> {
    return (await this.database.read<KeyRow>(LIST, [client])).map(toStoredApiKey);
  }

  /**
   * The key with this reference. The ellipsis that `keys list` shows after the first characters is ignored.
   *
   * @throws ApiKeyRequestError when no key or more than one has it
   */
  async find(reference: string): Promise<StoredApiKey> {
    const text = reference.replace(/…$/, '');
    // A message must not repeat a whole secret.
    const named = text.length > MAX_SHOWN_LENGTH ? `${displayedPrefix(text)}…` : printable(text);
    // PostgreSQL cannot compare a text with U+0000, and no key has one.
    const values = [text.replaceAll('\0', '\ufffd'), hashApiKey(text)];
    const [row, ...others] = await this.database.read<KeyRow>(FIND_BY_REFERENCE, values);
    if (others.length > 0) {
      throw new ApiKeyRequestError(`'${named}' means ${others.length + 1} API keys; name one by its id`);
    }
    if (row === undefined) {
      throw new ApiKeyRequestError(
        `No API key has the id or prefix '${named}'. See 'keys list', and name a key by its id, by ` +
          `6 to ${MAX_SHOWN_LENGTH} of its first characters, or by the whole key alone`,
      );
    }
    return toStoredApiKey(row);
  }

  /**
   * Replaces a key by a new one of the same client, with the same scopes and the same lifetime. Both are valid during
   * the overlap, in ms, by default 24 h; then the old key expires.
   *
   * @throws ApiKeyRequestError when not exactly one key has the reference, or it is revoked, expired or already replaced
   */
  async rotate(reference: string, overlap = 24 * 3_600_000): Promise<IssuedApiKey & { predecessor: StoredApiKey }> {
    const { id, prefix, createdAt, expiresAt } = await this.find(reference);
    if (prefix === NO_KEY) throw new ApiKeyRequestError(`'${id}' is no API key: its client calls in another way`);
    const now = this.clock.now();
    const secret = createApiKey(this.application.product.apiKeyPrefix);
    const end = new Date(now + Number(expiresAt) - createdAt.getTime());
    // The time of an end that no Date can hold is NaN, which is later than nothing.
    const expiry = expiresAt && (end.getTime() > now ? end : expiresAt);
    const values = [id, displayedPrefix(secret), hashApiKey(secret), new Date(now), expiry, new Date(now + overlap)];
    const [successor] = await this.database.write<[string]>(REPLACE, values);
    if (successor === undefined) {
      throw new ApiKeyRequestError(`API key ${id} is revoked, expired or already replaced; see 'keys show ${id}'`);
    }
    return { secret, key: await this.find(successor[0]), predecessor: await this.find(String(id)) };
  }

  /**
   * Revokes a key. A key that is already revoked keeps its time and reason.
   *
   * @throws ApiKeyRequestError when no key or more than one has the reference, or the reason has more than 500
   * characters
   */
  async revoke(reference: string, reason?: string): Promise<StoredApiKey> {
    if (reason !== undefined && reason.length > MAX_REASON_LENGTH) {
      throw new ApiKeyRequestError(`A reason has at most ${MAX_REASON_LENGTH} characters`);
    }
    const { id } = await this.find(reference);
    await this.database.write(REVOKE, [id, new Date(this.clock.now()), reason ?? null]);
    return this.find(String(id));
  }

  /**
   * @internal Stores the operator's key unless it exists. A revoked key stays revoked.
   *
   * @throws StartupError when the key has the form of this service's keys and a wrong checksum
   */
  async ensureBootstrapKey(secret: string): Promise<void> {
    if (hasWrongChecksum(secret, this.application.product.apiKeyPrefix)) {
      throw new StartupError(
        'BOOTSTRAP_API_KEY looks like a key of this service, but its checksum is wrong: a typing error?',
      );
    }
    await this.insert('bootstrap', secret, this.application.defaultScopes);
  }

  /**
   * @internal The entry of a client that an `Authenticator` knows, made at its first request. It can be revoked. No token
   * opens it: its hash is a SHA-512/256, and that of a token a SHA-256.
   *
   * @throws ApiError REVOKED_API_KEY; UnauthorizedException when the client's name is invalid
   */
  async ofClient(client: string): Promise<StoredApiKey> {
    const digest = hash('sha512-256', clientNameOf(client), 'binary');
    const found = await this.verifier.find(digest);
    if (found !== undefined) return found;
    const createdAt = new Date(this.clock.now());
    await this.database.write(INSERT, [client, NO_KEY, Buffer.from(digest, 'binary'), [], createdAt, null]);
    return (await this.verifier.find(digest)) as StoredApiKey;
  }

  /** @internal Creates a key if the database has none; otherwise undefined. */
  async createFirstKey(): Promise<IssuedApiKey | undefined> {
    const [row] = await this.database.read<[string]>(EXISTS, []);
    return row?.[0] !== 'false' ? undefined : this.create({ client: 'first-start' });
  }

  /** Stores a key. Returns no row, and changes no key, when one with this secret already exists. */
  private insert(client: string, secret: string, scopes: readonly string[], expiresAt?: Date): Promise<KeyRow[]> {
    const createdAt = new Date(this.clock.now());
    const values = [client, displayedPrefix(secret), hashApiKey(secret), scopes, createdAt, expiresAt ?? null];
    return this.database.write<KeyRow>(INSERT, values);
  }
}

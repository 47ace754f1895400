import { Inject, Injectable, Logger } from '@nestjs/common';
import type { Request } from 'express';
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type ErrorDefinition, EXPIRED_API_KEY, INVALID_API_KEY, REVOKED_API_KEY } from '#errors';
import { Batches, type BatchLimits, Database, isCancelled, type Statement, unavailable } from '#postgres';
import { Clock } from '#runtime';
import { Config } from '#settings';
import { hasWrongChecksum } from './api-key-format.js';
import { type KeyRow, toStoredApiKey, toVerifiedKey, VERIFIED_COLUMNS, type VerifiedKey } from './stored-api-key.js';

/** Longest accepted key, in characters; BOOTSTRAP_API_KEY may be this long. */
const MAX_KEY_LENGTH = 255;

/** Age in ms at which a cached key expires. A lost notification has no effect beyond this time. */
export const KEY_TIME_TO_LIVE_MS = 10_000;

/** Age in ms at which a cached key is looked up again in the background, so that requests never wait for it. */
const REFRESH_AFTER_MS = KEY_TIME_TO_LIVE_MS / 2;

const MAX_KNOWN_KEYS = 10_000;

/** Shortest time in ms between the starts of two queries for keys that are known, and of two for others. */
const QUERY_INTERVAL_MS = 10;

/**
 * One query looks up all known keys that wait, and runs alone. A token waits for the queries before its own: the one in flight,
 * which the time limit of statements bounds.
 */
const LOOK_UPS: BatchLimits = { size: 1_000, concurrency: 1, waiting: 1_000, waitMs: 5_000 };

/** The same for tokens that were no key before. Fewer at a time: all of them get their responses in one turn of the event loop. */
const FIRST_LOOK_UPS: BatchLimits = { ...LOOK_UPS, size: 25 };

const FIND_BY_HASHES: Statement = {
  name: 'api_key_find_by_hashes',
  text: `SELECT ${VERIFIED_COLUMNS}, encode(key.hash, 'base64') FROM api_key key JOIN client ON client.id = key.client_id WHERE key.hash = ANY ($1)`,
};

// RFC 6750, section 2.1: credentials = "Bearer" 1*SP b64token. RFC 9110, section 11.1: the scheme is case-insensitive.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/** The bearer token of a request, such as an API key; undefined without one. */
export function bearerTokenOf({ headers }: Request): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

interface KnownKey {
  readonly key: VerifiedKey;
  /** The time of the look-up, in ms. */
  readonly checkedAt: number;
  /** `changes` at the look-up. A key that was looked up before a change is looked up again. */
  readonly changes: number;
}

/**
 * Finds the key of a bearer token, from memory in almost all cases.
 *
 * The database is queried for tokens that are new or expired in memory. One query looks up all waiting tokens, and
 * there are at most 100 queries per second, and 100 for tokens that were no key before, so that known keys never wait for a
 * flood of those. Tokens that are no keys are not cached, so that a flood of them evicts no key.
 *
 * Stores only a token's SHA-256. An attacker cannot steer it, so the time of a look-up reveals nothing about a key.
 */
@Injectable()
export class ApiKeyVerifier {
  /** By SHA-256 in base64. */
  private readonly knownKeys = new Map<string, KnownKey>();
  private readonly lookUps = this.batches(LOOK_UPS);
  private readonly firstLookUps = this.batches(FIRST_LOOK_UPS);
  /** Number of changes of keys that this process has noticed. */
  private changes = 0;
  private readonly log = new Logger(ApiKeyVerifier.name);
  /** The beginning of each challenge. */
  readonly realm: string;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    @Inject(Config) private readonly config: Pick<Config, 'product'>,
  ) {
    this.realm = `Bearer realm="${config.product.name}"`;
  }

  /**
   * The key of a bearer token; a promise only when the database must be queried.
   *
   * @throws ApiError INVALID_API_KEY, REVOKED_API_KEY or EXPIRED_API_KEY, each with its challenge; UNAVAILABLE when the
   * database is unreachable or slow, or a thousand others wait to be looked up
   */
  verify(token: string, now = this.clock.now()): VerifiedKey | Promise<VerifiedKey> {
    if (token.length > MAX_KEY_LENGTH) throw this.invalidToken(INVALID_API_KEY);
    const hashed = hash('sha256', token, 'base64');
    const known = this.cachedKey(hashed, now);
    if (known !== undefined) return this.usableKey(known, now);
    // A wrong checksum means a typing error or a guess, so it costs no query.
    if (hasWrongChecksum(token, this.config.product.apiKeyPrefix)) throw this.invalidToken(INVALID_API_KEY);
    return this.lookUp(hashed).then((key) => {
      if (key === undefined) throw this.invalidToken(INVALID_API_KEY);
      return this.usableKey(key, this.clock.now());
    });
  }

  /**
   * The key as the last look-up found it, however long ago; undefined if none did since the last change of a key. Only for
   * requests that operators need while the database is unreachable.
   *
   * @throws ApiError REVOKED_API_KEY or EXPIRED_API_KEY
   */
  lastKnown(token: string): VerifiedKey | undefined {
    const known = this.knownKeys.get(hash('sha256', token, 'base64'));
    // If any key has changed, this one may be revoked.
    return known?.changes === this.changes ? this.usableKey(known.key, this.clock.now()) : undefined;
  }

  /** Whether a bearer token begins like a key of this service. */
  isKey(token: string | undefined): boolean {
    return token?.startsWith(this.config.product.apiKeyPrefix) === true;
  }

  /** The client of a key in memory, whether or not the key is still valid. Use it only for the client's even share of this process. */
  knownClient(token: string | undefined): bigint | undefined {
    return token === undefined ? undefined : this.knownKeys.get(hash('sha256', token, 'base64'))?.key.client.id;
  }

  /** The key with a hash in base64; undefined if there is none. Throws as `verify` does. */
  async find(hashed: string): Promise<VerifiedKey | undefined> {
    const key = this.cachedKey(hashed, this.clock.now()) ?? (await this.lookUp(hashed));
    return key && this.usableKey(key, this.clock.now());
  }

  private cachedKey(hashed: string, now: number): VerifiedKey | undefined {
    const known = this.knownKeys.get(hashed);
    if (known?.changes !== this.changes || !isFresh(known.checkedAt, now)) return undefined;
    if (now - known.checkedAt >= REFRESH_AFTER_MS) {
      // Errors are ignored here; the look-up runs again, and is awaited, when the entry expires.
      this.lookUp(hashed).catch(() => undefined);
    }
    return known.key;
  }

  /** Makes the cache stale, because a key has changed: one query then looks up all keys in use. */
  forget(): void {
    this.changes++;
  }

  private batches(limits: BatchLimits): Batches<string, VerifiedKey | undefined> {
    let lastQueryAt = -Infinity;
    return new Batches(async (hashes) => {
      const wait = lastQueryAt + QUERY_INTERVAL_MS - performance.now();
      if (wait > 0) await sleep(wait);
      lastQueryAt = performance.now();
      return this.findKeys(hashes);
    }, limits);
  }

  /** Rejects, and does not throw, when too many wait. A look-up never joins a query that has begun. */
  private async lookUp(hashed: string): Promise<VerifiedKey | undefined> {
    return (this.knownKeys.has(hashed) ? this.lookUps : this.firstLookUps).run(hashed, hashed);
  }

  private async findKeys(hashes: readonly string[]): Promise<(VerifiedKey | undefined)[]> {
    const { changes } = this;
    const checkedAt = this.clock.now();
    const values = hashes.map((hashed) => Buffer.from(hashed, 'base64'));
    const rows = await this.database
      .read<[...KeyRow, hash: string]>(FIND_BY_HASHES, [values])
      // Not `took_too_long`: the request has not asked for this statement.
      .catch((error: unknown) => Promise.reject(isCancelled(error) ? unavailable(error) : error));
    const found = new Map(rows.map((row) => [row[12], toVerifiedKey(toStoredApiKey(row))]));
    for (const key of found.values()) this.reportUnreadable(key);
    const keys = hashes.map((hashed) => found.get(hashed));
    // Otherwise a key has changed meanwhile, and the result may be older than the change.
    if (changes === this.changes) {
      for (const [index, hashed] of hashes.entries()) {
        const key = keys[index];
        this.knownKeys.delete(hashed);
        if (key !== undefined) this.remember(hashed, { key, checkedAt, changes });
      }
    }
    return keys;
  }

  private reportUnreadable({ id, expiresAt, revokedAt }: VerifiedKey): void {
    if ([expiresAt, revokedAt].some((time) => time !== null && Number.isNaN(time.getTime())))
      this.log.error(`API key ${id} is refused: its end or revocation cannot be read from the database.`);
  }

  /** Evicts the key that was looked up longest ago. Keys in use are looked up again regularly, so unused ones go first. */
  private remember(hashed: string, known: KnownKey): void {
    this.knownKeys.set(hashed, known);
    if (this.knownKeys.size <= MAX_KNOWN_KEYS) return;
    const [oldest] = this.knownKeys.keys();
    this.knownKeys.delete(oldest as string);
  }

  private usableKey(key: VerifiedKey, now: number): VerifiedKey {
    if (key.revokedAt !== null) throw this.invalidToken(REVOKED_API_KEY);
    // Not `<= now`: an invalid Date must refuse the key.
    if (key.expiresAt !== null && !(key.expiresAt.getTime() > now)) throw this.invalidToken(EXPIRED_API_KEY);
    return key;
  }

  private invalidToken(definition: ErrorDefinition): ApiError {
    const { message } = definition;
    const description = message.replace(/\.$/, '');
    return new ApiError(definition, message, {
      'WWW-Authenticate': `${this.realm}, error="invalid_token", error_description="${description}"`,
    });
  }
}

/** Entries from the future are not fresh: setting the clock back must not prolong them. */
function isFresh(checkedAt: number, now: number): boolean {
  return now >= checkedAt && now - checkedAt < KEY_TIME_TO_LIVE_MS;
}

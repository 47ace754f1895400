import { Injectable } from '@nestjs/common';
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Clock } from '../clock.js';
import { ApiError } from '../errors/api-error.js';
import {
  EXPIRED_API_KEY,
  type ErrorDefinition,
  INVALID_API_KEY,
  REVOKED_API_KEY,
  UNAVAILABLE,
} from '../errors/error-catalogue.js';
import { hasWrongChecksum } from './api-key-format.js';
import { ApiKeyRepository, type StoredApiKey } from './api-key.repository.js';

/** Longest key that is looked at; a bootstrap key may have 255 characters. */
const MAX_KEY_LENGTH = 255;

/** Time in ms after which what was learned of a key counts no more: the longest that a lost notification can be felt. */
export const KEY_TIME_TO_LIVE_MS = 10_000;

/** Age in ms from which on a key in use is looked up again while requests go on, so that none of them waits for it. */
const REFRESH_AFTER_MS = KEY_TIME_TO_LIVE_MS / 2;

/** Most keys that are remembered; and, apart from them, most tokens that are remembered to be none. */
const MAX_KNOWN_KEYS = 10_000;
export const MAX_UNKNOWN_TOKENS = 10_000;

/** Least time in ms between two queries for keys, and most tokens that wait for the next one. */
const QUERY_INTERVAL_MS = 10;
const MAX_WAITING_TOKENS = 1_000;

/** A key, and when the database said so. */
interface KnownKey {
  readonly key: StoredApiKey;
  readonly checkedAt: number;
}

/** One query for the keys of many tokens. */
interface LookUp {
  readonly hashes: Set<string>;
  readonly found: Promise<Map<string, StoredApiKey>>;
}

/**
 * Tells which key a bearer token is. Every request asks, so the answer comes from memory, and at once.
 *
 * The database is asked for tokens that are new or over their time to live: with one query at a time for all of them, and
 * at most a hundred queries a second, however many clients send whatever they like. Tokens that are no keys are remembered
 * apart, so that a flood of them drives out no key.
 *
 * Only the SHA-256 of a token is kept. An attacker cannot steer it, so the time that finding it takes tells nothing of any
 * key's characters.
 */
@Injectable()
export class ApiKeyVerifier {
  private readonly knownKeys = new Map<string, KnownKey>();
  private readonly unknownTokens = new Map<string, number>();
  private current: LookUp | undefined;
  private next: LookUp | undefined;
  private previous: Promise<unknown> = Promise.resolve();
  private lastQueryAt = -Infinity;

  constructor(
    private readonly repository: ApiKeyRepository,
    private readonly clock: Clock,
  ) {}

  /**
   * The key that a bearer token is; a promise of it only when the database must be asked.
   *
   * @throws ApiError INVALID_API_KEY, REVOKED_API_KEY or EXPIRED_API_KEY, each with its challenge; UNAVAILABLE when the
   * database is away, or more than a thousand tokens wait for it
   */
  verify(token: string): StoredApiKey | Promise<StoredApiKey> {
    if (token.length > MAX_KEY_LENGTH) {
      throw unknownKey();
    }
    const hashed = hash('sha256', token, 'base64');
    const now = this.clock.now();
    const known = this.knownKeys.get(hashed);
    if (known !== undefined && isFresh(known.checkedAt, now)) {
      if (now - known.checkedAt >= REFRESH_AFTER_MS) {
        // What goes wrong here goes wrong again, and is heard, when the time to live is over.
        this.lookUp(hashed).catch(() => undefined);
      }
      return usableKey(known.key, now);
    }
    const unknownAt = this.unknownTokens.get(hashed);
    // A wrong checksum is a typing error or a guess: not worth a query.
    if ((unknownAt !== undefined && isFresh(unknownAt, now)) || hasWrongChecksum(token)) {
      throw unknownKey();
    }
    return this.lookUp(hashed).then((key) => {
      if (key === undefined) {
        throw unknownKey();
      }
      return usableKey(key, this.clock.now());
    });
  }

  /** Forgets everything, for something of a key or client has changed. Keys in use are looked up again in one query. */
  forget(): void {
    this.knownKeys.clear();
    this.unknownTokens.clear();
    // What is under way may have been read before the change.
    this.current = undefined;
  }

  private async lookUp(hashed: string): Promise<StoredApiKey | undefined> {
    const lookUp = this.current?.hashes.has(hashed) ? this.current : (this.next ??= this.createLookUp());
    if (lookUp.hashes.size >= MAX_WAITING_TOKENS && !lookUp.hashes.has(hashed)) {
      throw new ApiError(UNAVAILABLE, 'Too many API keys wait to be verified. Try again.', { 'Retry-After': '1' });
    }
    lookUp.hashes.add(hashed);
    return (await lookUp.found).get(hashed);
  }

  private createLookUp(): LookUp {
    const hashes = new Set<string>();
    const found = this.previous.then(async () => {
      const wait = this.lastQueryAt + QUERY_INTERVAL_MS - performance.now();
      if (wait > 0) await sleep(wait);
      this.lastQueryAt = performance.now();
      this.current = this.next;
      this.next = undefined;
      const { current } = this;
      const checkedAt = this.clock.now();
      try {
        const keys = await this.repository.findByHashes([...hashes]);
        if (this.current === current) {
          hashes.forEach((hashed) => this.remember(hashed, keys.get(hashed), checkedAt));
        }
        return keys;
      } finally {
        if (this.current === current) this.current = undefined;
      }
    });
    this.previous = found.catch(() => undefined);
    return { hashes, found };
  }

  private remember(hashed: string, key: StoredApiKey | undefined, checkedAt: number): void {
    if (key === undefined) {
      putLast(this.unknownTokens, hashed, checkedAt, MAX_UNKNOWN_TOKENS);
    } else {
      putLast(this.knownKeys, hashed, { key, checkedAt }, MAX_KNOWN_KEYS);
    }
  }
}

/** Keys in use are looked up, and so put last, again and again: what leaves first is what nobody uses. */
function putLast<Value>(map: Map<string, Value>, key: string, value: Value, maxSize: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > maxSize) {
    const [oldest] = map.keys();
    map.delete(oldest as string);
  }
}

/** A clock that was set back makes nothing live longer. */
function isFresh(checkedAt: number, now: number): boolean {
  return now >= checkedAt && now - checkedAt < KEY_TIME_TO_LIVE_MS;
}

function usableKey(key: StoredApiKey, now: number): StoredApiKey {
  if (key.revokedAt !== null) {
    throw invalidToken(REVOKED_API_KEY, 'The API key was revoked');
  }
  if (key.expiresAt !== null && key.expiresAt.getTime() <= now) {
    throw invalidToken(EXPIRED_API_KEY, 'The API key has expired');
  }
  return key;
}

function unknownKey(): ApiError {
  return invalidToken(INVALID_API_KEY, 'The API key is not known');
}

function invalidToken(definition: ErrorDefinition, description: string): ApiError {
  return new ApiError(definition, `${description}.`, {
    'WWW-Authenticate': `Bearer realm="petstore", error="invalid_token", error_description="${description}"`,
  });
}

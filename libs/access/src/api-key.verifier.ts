import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Request } from 'express';
import { hash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { countHeader } from '#edge';
import {
  ApiError,
  type ErrorDefinition,
  EXPIRED_API_KEY,
  INVALID_API_KEY,
  MISSING_API_KEY,
  REVOKED_API_KEY,
} from '#errors';
import { Batches, type BatchLimits, Database, isCancelled, type Statement, unavailable } from '#postgres';
import { Clock } from '#runtime';
import { Config } from '#settings';
import { hasWrongChecksum } from './api-key-format.js';
import { type KeyRow, toStoredApiKey, VERIFIED_COLUMNS, type VerifiedKey } from './stored-api-key.js';

/** Time in ms that a key counts from the beginning of its look-up, so that a change of it takes effect everywhere within it. */
export const KEY_TIME_TO_LIVE_MS = 1_000;

/** Interval in ms between two look-ups of the keys in use. The rest of KEY_TIME_TO_LIVE_MS is for the query. */
export const REFRESH_INTERVAL_MS = 700;

const MAX_KNOWN_KEYS = 10_000;

/** Shortest time in ms between the starts of two queries for tokens that were no key before. */
const FIRST_INTERVAL_MS = 10;

/**
 * One query looks up the known keys that wait, and runs alone. A token waits for the queries before its own, which the time limit of
 * statements bounds.
 */
const LOOK_UPS: BatchLimits = { size: 1_000, concurrency: 1, waiting: MAX_KNOWN_KEYS, waitMs: 5_000 };

/** The same for tokens that were no key before. Fewer at a time: all of them get their responses in one turn of the event loop. */
const FIRST_LOOK_UPS: BatchLimits = { ...LOOK_UPS, size: 25, waiting: 1_000 };

const FIND = `SELECT ${VERIFIED_COLUMNS}, encode(key.hash, 'base64') FROM api_key key JOIN client ON client.id = key.client_id WHERE key.hash =`;
/** PostgreSQL plans the statement for several hashes anew each time, which costs more than twice the rest. */
const FIND_BY_HASH: Statement = { name: 'api_key_find_by_hash', text: `${FIND} $1` };
const FIND_BY_HASHES: Statement = { name: 'api_key_find_by_hashes', text: `${FIND} ANY ($1)` };

// RFC 6750, section 2.1: credentials = "Bearer" 1*SP b64token. RFC 9110, section 11.1: the scheme is case-insensitive.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/** The bearer token of a request, such as an API key; undefined without one. */
export function bearerTokenOf({ headers }: Request): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/** What may be wrong with credentials of the scheme Bearer that are no token; the first that applies. Messages never repeat a secret. */
const MALFORMED: readonly [RegExp, string][] = [
  [/^bearer\b/i, 'The word Bearer stands twice before the API key.'],
  [/["'`]/, 'The API key stands in quotation marks; send it without them.'],
  [/\s/, 'There is a space within the API key.'],
  [/^/, 'The API key has a character that no key has.'],
];

interface KnownKey {
  readonly key: VerifiedKey;
  /** The beginning of the look-up by the `Clock`, and by `performance.now()`. */
  readonly checkedAt: number;
  readonly since: number;
  /** Whether a request has used this entry. */
  isUsed: boolean;
}

/**
 * Finds the key of a bearer token, from memory if it was looked up less than KEY_TIME_TO_LIVE_MS ago.
 *
 * Every REFRESH_INTERVAL_MS one query looks up the keys that were used since their last look-up, so that their requests do not wait.
 * Other requests wait for a look-up of their own, which begins after them; one query looks up all that wait. Tokens that were no
 * key before have queries of their own, at most 100 per second, so that known keys never wait for a flood of those. Tokens
 * that are no keys are not cached, so that a flood of them evicts no key.
 *
 * Stores only a token's SHA-256. An attacker cannot steer it, so the time of a look-up reveals nothing about a key.
 */
@Injectable()
export class ApiKeyVerifier implements OnApplicationBootstrap, OnApplicationShutdown {
  /** By SHA-256, one character a byte. */
  private readonly knownKeys = new Map<string, KnownKey>();
  private readonly lookUps = new Batches((hashes: readonly string[]) => this.findKeys(hashes), LOOK_UPS);
  private readonly firstLookUps = new Batches(
    (hashes: readonly string[]) => this.findFirstKeys(hashes),
    FIRST_LOOK_UPS,
  );
  private nextFirstAt = -Infinity;
  /** An event is the hash of a key that a look-up has found refused; its listeners are those of `watch`. */
  private readonly refusals = new EventEmitter().setMaxListeners(0);
  private timer: NodeJS.Timeout | undefined;
  /** The beginning of each challenge. */
  readonly realm: string;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    @Inject(Config) private readonly config: Pick<Config, 'product'>,
  ) {
    this.realm = `Bearer realm="${config.product.name}"`;
  }

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => this.refresh(), REFRESH_INTERVAL_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  /**
   * The key of a bearer token; a promise only when the database must be queried.
   *
   * @throws ApiError INVALID_API_KEY, REVOKED_API_KEY or EXPIRED_API_KEY, each with its challenge; UNAVAILABLE when the
   * database is unreachable or slow, or a thousand others wait to be looked up
   */
  verify(token: string, now = this.clock.now()): VerifiedKey | Promise<VerifiedKey> {
    const hashed = sha256(token);
    const known = this.cachedKey(hashed, now);
    if (known !== undefined) return this.usableKey(known, now);
    // A wrong checksum means a typing error or a guess, so it costs no query.
    if (hasWrongChecksum(token, this.config.product.apiKeyPrefix)) throw this.invalidToken(INVALID_API_KEY);
    return this.lookUp(hashed).then((key) => {
      if (key === undefined) throw this.invalidToken(INVALID_API_KEY);
      return this.usableKey(key, this.clock.now());
    });
  }

  /** The refusal of a request without a usable token: MISSING_API_KEY, or INVALID_API_KEY that says what is wrong with the key. */
  noToken(request: Request): ApiError {
    const sent = /^bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1];
    if (sent === undefined || countHeader(request, 'authorization') > 1) return new ApiError(MISSING_API_KEY);
    return this.invalidToken(INVALID_API_KEY, MALFORMED.find(([pattern]) => pattern.test(sent))?.[1]);
  }

  /** Whether a bearer token begins like a key of this service. */
  isKey(token: string | undefined): boolean {
    return token?.startsWith(this.config.product.apiKeyPrefix) === true;
  }

  /** The client of a key in memory, whether or not the key is still valid. For the turns of clients, and the places that are kept for known keys. */
  knownClient(token: string | undefined): bigint | undefined {
    return token === undefined ? undefined : this.knownKeys.get(sha256(token))?.key.client.id;
  }

  /** The key with a hash, one character a byte; undefined if there is none. Throws as `verify` does. */
  async find(hashed: string): Promise<VerifiedKey | undefined> {
    const key = this.cachedKey(hashed, this.clock.now()) ?? (await this.lookUp(hashed));
    return key && this.usableKey(key, this.clock.now());
  }

  /**
   * Keeps a key in use until the returned function is called.
   *
   * @param onRefused called when a look-up finds that the key is gone, revoked or expired; not when the look-up fails
   */
  watch(token: string, onRefused: () => void): () => void {
    const hashed = sha256(token);
    this.refusals.on(hashed, onRefused);
    return () => this.refusals.off(hashed, onRefused);
  }

  private cachedKey(hashed: string, now: number): VerifiedKey | undefined {
    const known = this.knownKeys.get(hashed);
    if (known === undefined || !isFresh(known, now)) return undefined;
    known.isUsed = true;
    return known.key;
  }

  /**
   * Looks up the keys in use. If that fails, their next requests wait for look-ups of their own, and get the error of those. A key
   * that has expired meanwhile is refused also then.
   */
  private refresh(): void {
    const now = this.clock.now();
    const inUse = new Set(this.refusals.eventNames() as string[]);
    for (const [hashed, known] of this.knownKeys) {
      if (known.isUsed) inUse.add(hashed);
      if (refusalOf(known.key, now) !== undefined) this.refusals.emit(hashed);
      known.isUsed = false;
    }
    for (const hashed of inUse) this.lookUps.run(hashed, hashed).catch(() => undefined);
  }

  private async findFirstKeys(hashes: readonly string[]): Promise<(VerifiedKey | undefined)[]> {
    const wait = this.nextFirstAt - performance.now();
    if (wait > 0) await sleep(wait);
    this.nextFirstAt = performance.now() + FIRST_INTERVAL_MS;
    return this.findKeys(hashes);
  }

  /** Rejects, and does not throw, when too many wait. A look-up never joins a query that has begun. */
  private async lookUp(hashed: string): Promise<VerifiedKey | undefined> {
    return (this.knownKeys.has(hashed) ? this.lookUps : this.firstLookUps).run(hashed, hashed);
  }

  private async findKeys(hashes: readonly string[]): Promise<(VerifiedKey | undefined)[]> {
    const checkedAt = this.clock.now();
    const since = performance.now();
    const values = hashes.map((hashed) => Buffer.from(hashed, 'binary'));
    const isOne = values.length === 1;
    const rows = await this.database
      .read<[...KeyRow, hash: string]>(isOne ? FIND_BY_HASH : FIND_BY_HASHES, isOne ? values : [values])
      // Not `took_too_long`: the request has not asked for this statement.
      .catch((error: unknown) => Promise.reject(isCancelled(error) ? unavailable(error) : error));
    const found = new Map<string, VerifiedKey>();
    for (const row of rows) {
      const key = toStoredApiKey(row);
      const caller = Object.freeze({ client: key.client.name, scopes: Object.freeze([...key.scopes]) });
      found.set(Buffer.from(row[12], 'base64').toString('binary'), { ...key, caller });
    }
    const now = this.clock.now();
    return hashes.map((hashed) => {
      const key = found.get(hashed);
      this.knownKeys.delete(hashed);
      if (key !== undefined) this.knownKeys.set(hashed, { key, checkedAt, since, isUsed: false });
      // The key that was looked up longest ago: keys in use are looked up again regularly, so unused ones go first.
      if (this.knownKeys.size > MAX_KNOWN_KEYS) this.knownKeys.delete(this.knownKeys.keys().next().value as string);
      if (key === undefined || refusalOf(key, now) !== undefined) this.refusals.emit(hashed);
      return key;
    });
  }

  private usableKey(key: VerifiedKey, now: number): VerifiedKey {
    const refusal = refusalOf(key, now);
    if (refusal !== undefined) throw this.invalidToken(refusal);
    return key;
  }

  private invalidToken(definition: ErrorDefinition, message = definition.message): ApiError {
    const description = message.replace(/\.$/, '');
    return new ApiError(definition, message, {
      'WWW-Authenticate': `${this.realm}, error="invalid_token", error_description="${description}"`,
    });
  }
}

function sha256(token: string): string {
  return hash('sha256', token, 'binary');
}

/** By both clocks: the `Clock` may be set back, and `performance.now()` may stand still while the machine sleeps. */
function isFresh({ checkedAt, since }: KnownKey, now: number): boolean {
  return now - checkedAt < KEY_TIME_TO_LIVE_MS && performance.now() - since < KEY_TIME_TO_LIVE_MS;
}

function refusalOf({ revokedAt, expiresAt }: VerifiedKey, now: number): ErrorDefinition | undefined {
  if (revokedAt !== null) return REVOKED_API_KEY;
  // Not `<= now`: an invalid Date must refuse the key.
  if (expiresAt !== null && !(expiresAt.getTime() > now)) return EXPIRED_API_KEY;
  return undefined;
}

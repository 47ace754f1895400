import { Injectable } from '@nestjs/common';
import { Application } from '../application.js';
import { Clock } from '../clock.js';
import { StartupError } from '../errors/startup-error.js';
import { DEFAULT_OVERLAP_MS } from './api-key-defaults.js';
import { API_KEY_PATTERN, createApiKey, displayedPrefix, hasWrongChecksum } from './api-key-format.js';
import { ApiKeyRepository, type Client, type StoredApiKey } from './api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { isScope } from './scopes.js';

/** Longest name of a client and longest reason for a revocation, in characters. */
const MAX_CLIENT_NAME_LENGTH = 255;
const MAX_REASON_LENGTH = 500;

/** What a new key may be. */
export interface NewApiKey {
  /** The application that uses it, 1 to 255 printable characters; made known when it is new. */
  client: string;
  /** What it may do; the application's default scopes when not given. */
  scopes?: readonly string[] | undefined;
  /** From when on it is refused; never when not given. */
  expiresAt?: Date | undefined;
}

/** A key just made, and its secret, which is in this answer and nowhere else. */
export interface IssuedApiKey {
  readonly key: StoredApiKey;
  readonly secret: string;
}

/** Which keys to list; each condition that is given must hold. */
export interface ApiKeyListing {
  /** Name of the client. */
  client?: string | undefined;
  /** Valid keys that expire within this time in ms. */
  expiringWithin?: number | undefined;
  /** Valid keys that were neither made nor used within this time in ms. */
  unusedFor?: number | undefined;
}

/** What the operator asked for cannot be done; the message says why and what can. */
export class ApiKeyRequestError extends Error {
  override readonly name = 'ApiKeyRequestError';
}

/**
 * Makes, shows, limits, replaces and revokes API keys. What changes takes effect in this process at once, and in every
 * other one as soon as PostgreSQL's notification arrives there, or after KEY_TIME_TO_LIVE_MS without one.
 *
 * A key is named by its id, by six or more of its displayed characters, or by the whole secret.
 */
@Injectable()
export class ApiKeysService {
  constructor(
    private readonly repository: ApiKeyRepository,
    private readonly verifier: ApiKeyVerifier,
    private readonly clock: Clock,
    private readonly application: Application,
  ) {}

  /**
   * Makes a key.
   *
   * @throws ApiKeyRequestError when the client's name or a scope cannot be one
   */
  async create({ client, scopes = this.application.defaultScopes, expiresAt }: NewApiKey): Promise<IssuedApiKey> {
    // \p{C}: what cannot be printed; \p{Z}: white space, which nobody sees at an end.
    if (!/^(?![\p{Z}])[^\p{C}]+(?<![\p{Z}])$/u.test(client) || client.length > MAX_CLIENT_NAME_LENGTH) {
      throw new ApiKeyRequestError(
        `A client's name has 1 to ${MAX_CLIENT_NAME_LENGTH} printable characters and no white space at its ends`,
      );
    }
    const wrongScope = scopes.find((scope) => !isScope(scope));
    if (wrongScope !== undefined) {
      throw new ApiKeyRequestError(
        `'${wrongScope}' is no scope; a scope looks like ${this.application.defaultScopes[0]}`,
      );
    }
    const secret = createApiKey();
    const key = await this.repository.insert(secret, { client, scopes, expiresAt: expiresAt ?? null });
    if (!key) {
      throw new Error('A new API key met another one with the same 256 random bits.');
    }
    return { key, secret };
  }

  /**
   * Keys by client and age.
   *
   * @throws ApiKeyRequestError when there is no such client
   */
  async list({ client, expiringWithin, unusedFor }: ApiKeyListing = {}): Promise<StoredApiKey[]> {
    if (client !== undefined && !(await this.repository.findClient(client))) {
      throw unknownClient(client);
    }
    const now = this.clock.now();
    return this.repository.list({
      client,
      expiringBefore: expiringWithin === undefined ? undefined : new Date(now + expiringWithin),
      unusedSince: unusedFor === undefined ? undefined : new Date(now - unusedFor),
      now: new Date(now),
    });
  }

  /**
   * The one key that is meant.
   *
   * @throws ApiKeyRequestError when no key or several are meant
   */
  async find(reference: string): Promise<StoredApiKey> {
    // Copied from a table, where the displayed characters end with an ellipsis.
    const [key, ...others] = await this.repository.findByReference(reference.replace(/…$/, ''));
    // Never the whole of what may be a secret.
    const named =
      reference.length > 20 || API_KEY_PATTERN.test(reference) ? `${displayedPrefix(reference)}…` : reference;
    if (!key) {
      throw new ApiKeyRequestError(
        `No API key has the id '${named}' or starts with it; 'keys list' shows both, and a prefix needs 6 characters`,
      );
    }
    if (others.length > 0) {
      throw new ApiKeyRequestError(`'${named}' means ${others.length + 1} API keys; name one by its id`);
    }
    return key;
  }

  /**
   * Makes a key that replaces another one: of the same client, with the same scopes, for as long as the other was made
   * for. Both are valid until the overlap, in ms, is over; then the predecessor expires.
   *
   * @throws ApiKeyRequestError when no key or several are meant, or the key is revoked, expired or replaced already
   */
  async rotate(reference: string, overlap = DEFAULT_OVERLAP_MS): Promise<IssuedApiKey & { predecessor: StoredApiKey }> {
    const { id, createdAt, expiresAt, revokedAt, successorId } = await this.find(reference);
    const now = this.clock.now();
    if (revokedAt !== null || (expiresAt !== null && expiresAt.getTime() <= now)) {
      const state = revokedAt === null ? 'has expired' : 'is revoked';
      throw new ApiKeyRequestError(`API key ${id} ${state} and cannot be replaced; make a new one with 'keys create'`);
    }
    if (successorId !== null) {
      throw new ApiKeyRequestError(`API key ${id} was replaced already, by API key ${successorId}; rotate that one`);
    }
    const secret = createApiKey();
    const successor = await this.repository.replace(id, {
      secret,
      expiresAt: expiresAt && new Date(now + expiresAt.getTime() - createdAt.getTime()),
      overlapUntil: new Date(now + overlap),
    });
    this.verifier.forget();
    if (successor === undefined) {
      throw new ApiKeyRequestError(`API key ${id} was revoked or replaced just now; 'keys show ${id}' tells`);
    }
    return { secret, key: await this.find(String(successor)), predecessor: await this.find(String(id)) };
  }

  /**
   * Revokes the key that is meant. One that was revoked before keeps its time and reason.
   *
   * @throws ApiKeyRequestError when no key or several are meant, or the reason is longer than 500 characters
   */
  async revoke(reference: string, reason?: string): Promise<StoredApiKey> {
    if (reason !== undefined && reason.length > MAX_REASON_LENGTH) {
      throw new ApiKeyRequestError(`A reason has at most ${MAX_REASON_LENGTH} characters`);
    }
    const { id } = await this.find(reference);
    await this.repository.revoke(id, reason ?? null);
    this.verifier.forget();
    return this.find(String(id));
  }

  /**
   * Gives a client a rate limit of its own in requests a minute, 0 for none at all; null takes it away again.
   *
   * @throws ApiKeyRequestError when there is no such client
   */
  async limit(name: string, perMinute: number | null): Promise<Client> {
    const client = await this.repository.limitClient(name, perMinute);
    this.verifier.forget();
    if (!client) {
      throw unknownClient(name);
    }
    return client;
  }

  /** Sees to it that a key given by the operator exists; one that was revoked stays revoked. */
  async ensureBootstrapKey(secret: string): Promise<void> {
    if (hasWrongChecksum(secret)) {
      throw new StartupError(
        'BOOTSTRAP_API_KEY looks like a key of this service, but its checksum is wrong: a typing error?',
      );
    }
    const { defaultScopes } = this.application;
    await this.repository.insert(secret, { client: 'bootstrap', scopes: defaultScopes, expiresAt: null });
  }

  /** Makes the very first key of a database that has none; undefined when it has one. */
  async createFirstKey(): Promise<string | undefined> {
    return (await this.repository.isEmpty()) ? (await this.create({ client: 'first-start' })).secret : undefined;
  }
}

function unknownClient(name: string): ApiKeyRequestError {
  return new ApiKeyRequestError(`No client has the name '${name}'; 'keys list' shows the clients`);
}

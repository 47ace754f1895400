import { Injectable } from '@nestjs/common';
import { Application } from '../application.js';
import { Clock } from '../clock.js';
import { StartupError } from '../errors/startup-error.js';
import {
  API_KEY_PATTERN,
  ApiKeyRequestError,
  createApiKey,
  DEFAULT_OVERLAP_MS,
  digestOf,
  displayedPrefix,
  hashApiKey,
  hasWrongChecksum,
  isScope,
} from './api-key-format.js';
import { ApiKeyRepository, type Client, type StoredApiKey } from './api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';

/** Longest name of a client and longest reason for a revocation, in characters. */
const MAX_CLIENT_NAME_LENGTH = 255;
const MAX_REASON_LENGTH = 500;

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
 * Creates, lists, limits, rotates and revokes API keys. A change takes effect in this process at once. It takes effect
 * in other processes when PostgreSQL's notification arrives, or after KEY_TIME_TO_LIVE_MS without one.
 *
 * A `reference` to a key is its id, at least six of its first characters, or its secret.
 */
@Injectable()
export class ApiKeysService {
  /** @internal */
  constructor(
    private readonly repository: ApiKeyRepository,
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
    // \p{C} are unprintable characters; \p{Z} is white space, which is invisible at either end.
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
    const key = await this.repository.insert({
      client,
      ...digestOf(secret),
      scopes,
      createdAt: new Date(this.clock.now()),
      expiresAt: expiresAt ?? null,
    });
    if (!key) {
      throw new Error('A new API key met another one with the same 256 random bits.');
    }
    return { key, secret };
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
    return this.repository.list(client);
  }

  /**
   * The key with this reference.
   *
   * @throws ApiKeyRequestError when no key or more than one has it
   */
  async find(reference: string): Promise<StoredApiKey> {
    // The table of keys shows an ellipsis after the first characters; accept it when copied.
    const start = reference.replace(/…$/, '');
    const [key, ...others] = await this.repository.findByReference(start, hashApiKey(start));
    // A message must not repeat a whole secret.
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
   * Replaces a key by a new one of the same client, with the same scopes and the same lifetime. Both are valid during
   * the overlap, in ms; then the old key expires.
   *
   * @throws ApiKeyRequestError when no key or more than one has the reference, or the key is revoked, expired or
   * already replaced
   */
  async rotate(reference: string, overlap = DEFAULT_OVERLAP_MS): Promise<IssuedApiKey & { predecessor: StoredApiKey }> {
    const { id, createdAt, expiresAt } = await this.find(reference);
    const now = this.clock.now();
    const secret = createApiKey();
    const record = {
      ...digestOf(secret),
      createdAt: new Date(now),
      expiresAt: expiresAt && new Date(now + expiresAt.getTime() - createdAt.getTime()),
    };
    const successor = await this.repository.replace(id, record, new Date(now + overlap));
    this.verifier.forget();
    if (successor === undefined) {
      throw new ApiKeyRequestError(`API key ${id} is revoked, expired or already replaced; 'keys show ${id}' tells`);
    }
    return { secret, key: await this.find(String(successor)), predecessor: await this.find(String(id)) };
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
    await this.repository.revoke(id, new Date(this.clock.now()), reason ?? null);
    this.verifier.forget();
    return this.find(String(id));
  }

  /**
   * Sets a client's own rate limit in requests per minute, 0 for unlimited; null removes it.
   *
   * @throws ApiKeyRequestError when no client has this name
   */
  async limit(name: string, perMinute: number | null): Promise<Client> {
    const client = await this.repository.limitClient(name, perMinute);
    if (!client) {
      throw new ApiKeyRequestError(`No client has the name '${name}'; 'keys list' shows the clients`);
    }
    this.verifier.forget();
    return client;
  }

  /**
   * @internal Stores the operator's key unless it exists. A revoked key stays revoked.
   *
   * @throws StartupError when the key has the form of this service's keys and a wrong checksum
   */
  async ensureBootstrapKey(secret: string): Promise<void> {
    if (hasWrongChecksum(secret)) {
      throw new StartupError(
        'BOOTSTRAP_API_KEY looks like a key of this service, but its checksum is wrong: a typing error?',
      );
    }
    const { defaultScopes: scopes } = this.application;
    const createdAt = new Date(this.clock.now());
    await this.repository.insert({ client: 'bootstrap', ...digestOf(secret), scopes, createdAt, expiresAt: null });
  }

  /** @internal Creates a key if the database has none, and returns its secret; otherwise undefined. */
  async createFirstKey(): Promise<string | undefined> {
    return (await this.repository.isEmpty()) ? (await this.create({ client: 'first-start' })).secret : undefined;
  }
}

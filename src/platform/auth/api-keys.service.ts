import { Injectable } from '@nestjs/common';
import { Clock } from '../clock.js';
import { ApiError } from '../errors/api-error.js';
import {
  EXPIRED_API_KEY,
  type ErrorDefinition,
  INVALID_API_KEY,
  MISSING_API_KEY,
  REVOKED_API_KEY,
} from '../errors/error-catalogue.js';
import { StartupError } from '../errors/startup-error.js';
import { createApiKey, hashApiKey, hasWrongChecksum } from './api-key-format.js';
import { ApiKeyRepository, type StoredApiKey } from './api-key.repository.js';
import { DEFAULT_SCOPES, isScope } from './require-scopes.decorator.js';

/** Longest key that is looked at; a bootstrap key may have 255 characters. */
const MAX_KEY_LENGTH = 255;

/** What a new key may be. */
export interface NewApiKey {
  /** Who uses it, 1 to 255 characters. */
  name: string;
  /** What it may do; DEFAULT_SCOPES when not given. */
  scopes?: readonly string[] | undefined;
  /** From when on it is refused; never when not given. */
  expiresAt?: Date | undefined;
}

/** What the operator asked for cannot be done; the message says why and what can. */
export class ApiKeyRequestError extends Error {
  override readonly name = 'ApiKeyRequestError';
}

/** Makes, finds, verifies and revokes API keys. */
@Injectable()
export class ApiKeysService {
  constructor(
    private readonly repository: ApiKeyRepository,
    private readonly clock: Clock,
  ) {}

  /**
   * The key that this bearer token is.
   *
   * @throws ApiError INVALID_API_KEY, REVOKED_API_KEY or EXPIRED_API_KEY, each with its challenge
   */
  async verify(token: string): Promise<StoredApiKey> {
    // A wrong checksum is a typing error or a guess: not worth a query.
    if (token.length > MAX_KEY_LENGTH || hasWrongChecksum(token)) {
      throw invalidToken(INVALID_API_KEY, 'The API key is not known');
    }
    // The index is searched by hash, so the time this takes tells nothing of any key's characters.
    const key = await this.repository.findByHash(hashApiKey(token));
    if (!key) {
      throw invalidToken(INVALID_API_KEY, 'The API key is not known');
    }
    if (key.revokedAt) {
      throw invalidToken(REVOKED_API_KEY, 'The API key was revoked');
    }
    if (key.expiresAt && key.expiresAt.getTime() <= this.clock.now()) {
      throw invalidToken(EXPIRED_API_KEY, 'The API key has expired');
    }
    return key;
  }

  /** Makes a key. The secret is in this answer and nowhere else. */
  async create({
    name,
    scopes = DEFAULT_SCOPES,
    expiresAt,
  }: NewApiKey): Promise<{ key: StoredApiKey; secret: string }> {
    const secret = createApiKey();
    return { secret, key: await this.store(secret, { name, scopes, expiresAt }) };
  }

  async list(): Promise<StoredApiKey[]> {
    return this.repository.list();
  }

  /**
   * Revokes the key that is meant; at once for every request that is verified from now on.
   *
   * @param reference the key's id, or at least six of its displayed characters
   * @throws ApiKeyRequestError when no key or several are meant
   */
  async revoke(reference: string): Promise<StoredApiKey> {
    const { id } = await this.findOne(reference);
    return (await this.repository.revoke(id)) as StoredApiKey;
  }

  /** Sees to it that a key given by the operator exists; one that was revoked stays revoked. */
  async ensureBootstrapKey(secret: string): Promise<void> {
    if (hasWrongChecksum(secret)) {
      throw new StartupError(
        'BOOTSTRAP_API_KEY looks like a key of this service, but its checksum is wrong: a typing error?',
      );
    }
    await this.repository.insert(secret, { name: 'bootstrap', scopes: DEFAULT_SCOPES, expiresAt: null });
  }

  /** Makes the very first key of a database that has none; undefined when it has one. */
  async createFirstKey(): Promise<string | undefined> {
    return (await this.repository.isEmpty()) ? (await this.create({ name: 'first-start' })).secret : undefined;
  }

  private async store(secret: string, { name, scopes = DEFAULT_SCOPES, expiresAt }: NewApiKey): Promise<StoredApiKey> {
    if (!/^(?=.*\S)[^\p{Cc}]{1,255}$/u.test(name)) {
      throw new ApiKeyRequestError(
        'the name must be 1 to 255 characters, without control characters and not all white space',
      );
    }
    const wrongScope = scopes.find((scope) => !isScope(scope));
    if (wrongScope !== undefined) {
      throw new ApiKeyRequestError(`'${wrongScope}' is no scope; a scope looks like pets:read`);
    }
    const key = await this.repository.insert(secret, { name, scopes, expiresAt: expiresAt ?? null });
    if (!key) {
      throw new Error('A new API key met another one with the same 256 random bits.');
    }
    return key;
  }

  private async findOne(reference: string): Promise<StoredApiKey> {
    const [key, ...others] = await this.repository.findByReference(reference);
    if (!key) {
      throw new ApiKeyRequestError(
        `No API key has the id '${reference}' or starts with it; 'keys list' shows both, and a prefix needs 6 characters`,
      );
    }
    if (others.length > 0) {
      throw new ApiKeyRequestError(`'${reference}' means ${others.length + 1} API keys; name one by its id`);
    }
    return key;
  }
}

/** 401 when nothing usable was sent (RFC 6750, section 3). */
export function missingApiKey(): ApiError {
  return new ApiError(MISSING_API_KEY, 'Send an API key as Authorization: Bearer <API_KEY>, once.', {
    'WWW-Authenticate': 'Bearer realm="petstore"',
  });
}

function invalidToken(definition: ErrorDefinition, description: string): ApiError {
  return new ApiError(definition, `${description}.`, {
    'WWW-Authenticate': `Bearer realm="petstore", error="invalid_token", error_description="${description}"`,
  });
}

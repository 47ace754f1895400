import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { ApiError } from '../errors/api-error.js';
import { INSUFFICIENT_SCOPE, MISSING_API_KEY } from '../errors/error-catalogue.js';
import { countHeader } from '../server/requests/header-fields.js';
import type { StoredApiKey } from '../api-keys/storage/api-key.repository.js';
import { ApiKeyVerifier } from '../api-keys/api-key.verifier.js';
import { KeyUsage } from '../key-usage/key-usage.js';
import { OperationNames } from './operation-names.js';
import { PUBLIC_METADATA } from './public.decorator.js';
import { type RateLimit, RateLimiter } from '../rate-limit/rate-limiter.js';
import { REQUIRED_SCOPES_METADATA } from './require-scopes.decorator.js';

/** What a handler requires of a request. */
interface Access {
  readonly operation: string;
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
}

// RFC 6750, section 2.1: credentials = "Bearer" 1*SP b64token. RFC 9110, section 11.1: the scheme is case-insensitive.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Admits a request to a handler only with a valid API key, within the client's rate limit, and with the scopes of
 * `@RequireScopes`. Handlers with `@Public()` admit every request. Runs before the body is read, usually synchronously.
 *
 * @throws ApiError of status 401 or 403 with its challenge, or of status 429 with `Retry-After`
 */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  /** Reflection is slow; its result is cached by controller and handler. */
  private readonly known = new Map<unknown, Map<unknown, Access>>();

  constructor(
    private readonly reflector: Reflector,
    private readonly verifier: ApiKeyVerifier,
    private readonly usage: KeyUsage,
    private readonly rateLimiter: RateLimiter,
    private readonly operations: OperationNames,
  ) {}

  canActivate(execution: ExecutionContext): boolean | Promise<boolean> {
    const access = this.accessOf(execution);
    // `refuseUnprotectedHandlers` stops the start for other transports that are not public.
    if (execution.getType() !== 'http') return access.isPublic;
    const request = execution.getArgByIndex<Request>(0);
    request.context.operation = access.operation;
    return access.isPublic || this.admit(request, access);
  }

  /** Admits a request with a valid key, within the rate limit and with the scopes, and counts it as a call. */
  private admit(request: Request, { operation, scopes }: Access): boolean | Promise<boolean> {
    const key = this.keyOf(request);
    return key instanceof Promise
      ? key.then((verified) => this.count(verified, operation, scopes, request))
      : this.count(key, operation, scopes, request);
  }

  private keyOf(request: Request): StoredApiKey | Promise<StoredApiKey> {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined || countHeader(request, 'authorization') !== 1) {
      throw missingApiKey();
    }
    return this.verifier.verify(token);
  }

  private count(
    key: StoredApiKey,
    operation: string,
    scopes: readonly string[],
    request: Request,
  ): boolean | Promise<boolean> {
    request.context.client = key.client.name;
    request.context.clientId = key.client.id;
    this.usage.count(key.id, operation, request.headers['user-agent']);
    const limit = this.rateLimiter.take(key.client);
    return limit instanceof Promise
      ? limit.then((shared) => checkLimitAndScopes(key, scopes, shared, request.res))
      : checkLimitAndScopes(key, scopes, limit, request.res);
  }

  private accessOf(execution: ExecutionContext): Access {
    const controller = execution.getClass();
    const handler = execution.getHandler();
    const access = this.known.get(controller)?.get(handler);
    if (access) {
      return access;
    }
    const targets = [handler, controller];
    const reflected = {
      operation: this.operations.of(controller, handler.name) ?? handler.name,
      isPublic: this.reflector.getAllAndOverride<boolean | undefined>(PUBLIC_METADATA, targets) ?? false,
      scopes: this.reflector.getAllAndOverride<string[] | undefined>(REQUIRED_SCOPES_METADATA, targets) ?? [],
    };
    this.known.set(controller, (this.known.get(controller) ?? new Map<unknown, Access>()).set(handler, reflected));
    return reflected;
  }
}

function checkLimitAndScopes(
  key: StoredApiKey,
  scopes: readonly string[],
  limit: RateLimit | undefined,
  response: Response | undefined,
): true {
  if (limit !== undefined) {
    response?.setHeader('RateLimit-Policy', limit.policy);
    response?.setHeader('RateLimit', limit.state);
    if (limit.refusal) throw limit.refusal;
  }
  return checkScopes(key, scopes);
}

function checkScopes(key: StoredApiKey, scopes: readonly string[]): true {
  if (!scopes.every((scope) => key.scopes.includes(scope))) {
    throw insufficientScope(scopes, key.scopes);
  }
  return true;
}

/** Without credentials, the challenge should contain no error code (RFC 6750, section 3). */
function missingApiKey(): ApiError {
  return new ApiError(MISSING_API_KEY, MISSING_API_KEY.message, {
    'WWW-Authenticate': 'Bearer realm="petstore"',
  });
}

function insufficientScope(required: readonly string[], granted: readonly string[]): ApiError {
  const missing = required.filter((scope) => !granted.includes(scope));
  return new ApiError(INSUFFICIENT_SCOPE, `The API key lacks the scope ${missing.join(', ')}.`, {
    'WWW-Authenticate': `Bearer realm="petstore", error="insufficient_scope", scope="${required.join(' ')}"`,
  });
}

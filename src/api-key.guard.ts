import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { ApiKeyVerifier, Authenticators, EventStreams, NO_KEY, type StoredApiKey } from '#api-keys';
import { ApiError, INSUFFICIENT_SCOPE, MISSING_API_KEY, toApiError } from '#errors';
import { PlatformExpressAdapter } from '#http';
import { KeyUsage } from '#key-usage';
import { type Operation, OperationRegistry, refuseRemoved } from '#operations';
import { RateLimiter } from '#rate-limit';
import { Clock } from '#runtime';
import { product } from '#settings';

// RFC 6750, section 2.1: credentials = "Bearer" 1*SP b64token. RFC 9110, section 11.1: the scheme is case-insensitive.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/** The scope of `/metrics`. While the database is unreachable, a key with it that was valid before still counts there. */
const METRICS_SCOPE = 'metrics:read';

/**
 * Admits a request to a handler only with a valid API key or from a caller that an `Authenticator` knows, within the
 * client's rate limit, and with the scopes of `@RequireScopes`. Handlers with `@Public()` admit every request. Runs before
 * the body is read, and synchronously if the key is known and rate limits are not shared.
 *
 * @throws ApiError of status 401 or 403 with its challenge, or of status 429 with `Retry-After`
 */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly clock: Clock,
    private readonly verifier: ApiKeyVerifier,
    private readonly usage: KeyUsage,
    private readonly rateLimiter: RateLimiter,
    private readonly operations: OperationRegistry,
    private readonly streams: EventStreams,
    private readonly authenticators: Authenticators,
    { httpAdapter }: HttpAdapterHost<PlatformExpressAdapter>,
  ) {
    // Commands have no HTTP server.
    if (httpAdapter instanceof PlatformExpressAdapter) httpAdapter.knownClient = (request) => this.knownClient(request);
  }

  /** @param isKey the request is known to bring an API key or nothing */
  canActivate(execution: ExecutionContext, isKey = this.authenticators.all.length === 0): boolean | Promise<boolean> {
    const now = this.clock.now();
    const operation = this.operations.of(execution.getClass(), execution.getHandler());
    // No route: a handler of another transport. `refuseUnprotectedHandlers` stops the start unless it is public.
    if (operation === undefined) return execution.getType() !== 'http';
    const request = execution.getArgByIndex<Request>(0);
    const { context, headers } = request;
    context.operation = operation.name;
    context.now = now;
    if (operation.isPublic) {
      refuseRemoved(operation, now);
      return true;
    }
    const token = context.authorizations === 1 ? BEARER.exec(headers.authorization ?? '')?.[1] : undefined;
    if (!isKey && !token?.startsWith(product().apiKeyPrefix) && context.authorizations < 2) {
      return this.admitCaller(execution, request, operation);
    }
    if (token === undefined) throw new ApiError(MISSING_API_KEY);
    const key = this.verifier.verify(token, now);
    if (!(key instanceof Promise)) return this.admit(request, operation, key, token);
    return key
      .catch((error: unknown) => this.keyInOutage(error, operation, token))
      .then((found) => this.admit(request, operation, found, token));
  }

  private knownClient({ headers }: Request): bigint | undefined {
    const token = BEARER.exec(headers.authorization ?? '')?.[1];
    return token === undefined ? undefined : this.verifier.knownClient(token);
  }

  private async admitCaller(execution: ExecutionContext, request: Request, operation: Operation): Promise<boolean> {
    const caller = await this.authenticators.identify(request);
    return caller === undefined ? this.canActivate(execution, true) : this.admit(request, operation, caller);
  }

  /** Without metrics, no alert would say that the database is unreachable. */
  private keyInOutage(error: unknown, { scopes }: Operation, token: string): StoredApiKey {
    const isOutage = toApiError(error).unavailableCause !== undefined;
    const key = isOutage && scopes.includes(METRICS_SCOPE) ? this.verifier.lastKnown(token) : undefined;
    if (key === undefined) throw error;
    return key;
  }

  /** @param token undefined if an authenticator has found the key */
  private admit(request: Request, operation: Operation, key: StoredApiKey, token?: string): boolean | Promise<boolean> {
    const { name, scopes, isStream } = operation;
    const refusal = refusalOf(key, scopes);
    const { context, headers } = request;
    context.client = key.client.name;
    context.clientId = key.client.id;
    this.usage.count(key.id, name, headers['user-agent'], context.now);
    if (isStream) {
      this.streams.admit(request, key, () =>
        token === undefined ? this.authenticators.identify(request) : this.verifier.verify(token),
      );
    }
    const shared = this.rateLimiter.admit(key.client, request.res as Response, context.now);
    const decide = (): true => {
      if (refusal !== undefined) throw refusal;
      refuseRemoved(operation, context.now);
      return true;
    };
    return shared === undefined ? decide() : shared.then(decide);
  }
}

function refusalOf({ scopes, prefix }: StoredApiKey, required: readonly string[]): ApiError | undefined {
  const missing = required.filter((scope) => !scopes.includes(scope));
  if (missing.length === 0) return undefined;
  const subject = prefix === NO_KEY ? 'client' : 'API key';
  return new ApiError(INSUFFICIENT_SCOPE, `The ${subject} lacks the scope ${missing.join(', ')}.`, {
    'WWW-Authenticate': `Bearer realm="${product().name}", error="insufficient_scope", scope="${required.join(' ')}"`,
  });
}

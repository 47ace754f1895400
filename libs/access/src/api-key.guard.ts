import { type CanActivate, type ExecutionContext, Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Express, Request } from 'express';
import { hash, timingSafeEqual } from 'node:crypto';
import { ApiError, INSUFFICIENT_SCOPE, MISSING_API_KEY } from '#errors';
import { countHeader, servedRequestOf } from '#edge';
import { operationRemoved, type Operation, OperationRegistry } from '#operations';
import { Clock } from '#runtime';
import { ApiKeyVerifier, bearerTokenOf } from './api-key.verifier.js';
import { Authenticators } from './authenticator.js';
import { GUARD_SETTING } from './require-scopes.js';
import { REQUEST_STEPS, type RequestStep } from './request-step.js';
import { NO_KEY, type VerifiedKey } from './stored-api-key.js';

/** What a request must fulfil. */
type Demand = Pick<Operation, 'name' | 'scopes' | 'isStream' | 'removedAt' | 'deprecation' | 'fields'>;

/** What middleware demands besides scopes. Usage counts it under this name. */
const MIDDLEWARE = { name: 'middleware', isStream: false, removedAt: Infinity, deprecation: undefined, fields: {} };

/**
 * Admits a request to a handler only with a valid API key or from a caller that an `Authenticator` knows, if all steps admit
 * it, and with the scopes of `@RequireScopes`. Handlers with `@Public()` admit every request, those with `@OpenTo` also a token
 * of their own. None is admitted after the sunset of its operation. Runs before the body is read, and synchronously if the key
 * is known and no step waits.
 *
 * @throws ApiError of status 401 or 403 with its challenge, what a step throws, or OPERATION_REMOVED
 */
@Injectable()
export class ApiKeyGuard implements CanActivate, OnModuleInit {
  constructor(
    private readonly clock: Clock,
    private readonly operations: OperationRegistry,
    private readonly authenticators: Authenticators,
    private readonly verifier: ApiKeyVerifier,
    @Inject(REQUEST_STEPS) private readonly steps: readonly RequestStep[],
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  onModuleInit(): void {
    this.adapterHost.httpAdapter.getInstance<Express>().set(GUARD_SETTING, this);
  }

  canActivate(execution: ExecutionContext): boolean | Promise<boolean> {
    const operation = this.operations.all.get(execution.getClass())?.get(execution.getHandler());
    // No route: code calls it, or it is a handler of another transport. `refuseUnprotectedHandlers` stops the start unless it is public.
    if (operation === undefined) return servedRequestOf(execution) === undefined;
    const request = execution.getArgByIndex<Request>(0);
    const { context } = request;
    context.operation = operation.name;
    context.sendsFaults = operation.sendsFaults;
    context.toSent = operation.toSent;
    context.now = this.clock.now();
    if (operation.isPublic) {
      if (context.now >= operation.removedAt) throw operationRemoved(operation);
      return true;
    }
    const { tokenHash } = operation;
    const token = tokenHash && bearerTokenOf(request);
    // By hashes, in constant time, so that the duration reveals nothing of the expected token.
    if (tokenHash && token && timingSafeEqual(hash('sha256', token, 'buffer'), tokenHash)) return true;
    return this.admitSender(request, operation);
  }

  /** See `requireScopes`. */
  async admitToMiddleware(request: Request, scopes: readonly string[]): Promise<void> {
    request.context.now = this.clock.now();
    await this.admitSender(request, { ...MIDDLEWARE, scopes });
  }

  private admitSender(request: Request, operation: Demand): boolean | Promise<boolean> {
    const token = bearerTokenOf(request);
    const isKey = this.authenticators.all.length === 0 || this.verifier.isKey(token);
    const key = isKey ? this.keyOf(request, token) : this.callerOf(request, token);
    return key instanceof Promise
      ? key.then((found) => this.admit(request, operation, found))
      : this.admit(request, operation, key);
  }

  private async callerOf(request: Request, token: string | undefined): Promise<VerifiedKey> {
    if (countHeader(request, 'authorization') > 1) throw new ApiError(MISSING_API_KEY);
    return (await this.authenticators.identify(request)) ?? this.keyOf(request, token);
  }

  private keyOf(request: Request, token: string | undefined): VerifiedKey | Promise<VerifiedKey> {
    if (token === undefined) throw this.verifier.noToken(request);
    return this.verifier.verify(token, request.context.now);
  }

  private admit(request: Request, operation: Demand, key: VerifiedKey): boolean | Promise<boolean> {
    const { context } = request;
    const refusal = this.refusalOf(operation, key, context.now);
    context.client = key.client.name;
    context.clientId = key.client.id;
    request.caller = key.caller;
    let admitted: unknown;
    for (const step of this.steps) {
      if (step.isForStreams && !operation.isStream) continue;
      admitted =
        admitted instanceof Promise
          ? admitted.then(() => step.admit(request, operation, key))
          : step.admit(request, operation, key);
    }
    if (admitted instanceof Promise) return admitted.then(() => refusal === undefined || Promise.reject(refusal));
    if (refusal !== undefined) throw refusal;
    return true;
  }

  private refusalOf(operation: Demand, { scopes, prefix }: VerifiedKey, now: number): ApiError | undefined {
    const missing = operation.scopes.filter((scope) => !scopes.includes(scope));
    if (missing.length === 0) return now < operation.removedAt ? undefined : operationRemoved(operation);
    const subject = prefix === NO_KEY ? 'client' : 'API key';
    const required = operation.scopes.join(' ');
    return new ApiError(INSUFFICIENT_SCOPE, `The ${subject} lacks the scope ${missing.join(', ')}.`, {
      'WWW-Authenticate': `${this.verifier.realm}, error="insufficient_scope", scope="${required}"`,
    });
  }
}

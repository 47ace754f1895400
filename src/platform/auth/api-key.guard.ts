import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { ApiError } from '../errors/api-error.js';
import { INSUFFICIENT_SCOPE } from '../errors/error-catalogue.js';
import { countHeader } from '../http/header-fields.js';
import { ApiKeysService, missingApiKey } from './api-keys.service.js';
import { PUBLIC_METADATA } from './public.decorator.js';
import { REQUIRED_SCOPES_METADATA } from './require-scopes.decorator.js';

/** What a handler asks of its callers. */
interface Access {
  readonly operation: string;
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
}

// RFC 6750, section 2.1: credentials = "Bearer" 1*SP b64token; the scheme's case does not matter (RFC 9110, section 11.1).
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Closes every handler of every module to requests without a valid API key, `@Public()` ones excepted, and handlers with
 * `@RequireScopes` to keys without those scopes. It runs before anything of the body is read.
 *
 * @throws ApiError of status 401 or 403, with its challenge
 */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  /** Reflection is slow and its result fixed, so each handler of each controller is looked at once. */
  private readonly known = new Map<unknown, Map<unknown, Access>>();

  constructor(
    private readonly reflector: Reflector,
    private readonly apiKeys: ApiKeysService,
  ) {}

  async canActivate(execution: ExecutionContext): Promise<boolean> {
    const request = execution.switchToHttp().getRequest<Request>();
    const { context, headers } = request;
    const access = this.accessOf(execution);
    context.operation = access.operation;
    if (access.isPublic) {
      return true;
    }
    const token = BEARER.exec(headers.authorization ?? '')?.[1];
    if (token === undefined || countHeader(request, 'authorization') !== 1) {
      throw missingApiKey();
    }
    const key = await this.apiKeys.verify(token);
    context.client = key.name;
    const missing = access.scopes.filter((scope) => !key.scopes.includes(scope));
    if (missing.length > 0) {
      throw insufficientScope(access.scopes, missing);
    }
    return true;
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
      operation: handler.name,
      isPublic: this.reflector.getAllAndOverride<boolean | undefined>(PUBLIC_METADATA, targets) ?? false,
      scopes: this.reflector.getAllAndOverride<string[] | undefined>(REQUIRED_SCOPES_METADATA, targets) ?? [],
    };
    this.known.set(controller, (this.known.get(controller) ?? new Map<unknown, Access>()).set(handler, reflected));
    return reflected;
  }
}

function insufficientScope(required: readonly string[], missing: readonly string[]): ApiError {
  return new ApiError(INSUFFICIENT_SCOPE, `The API key lacks the scope ${missing.join(', ')}.`, {
    'WWW-Authenticate': `Bearer realm="petstore", error="insufficient_scope", scope="${required.join(' ')}"`,
  });
}

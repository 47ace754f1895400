import type { RequestHandler } from 'express';
import { RequireScopes } from '#operations';
import type { ApiKeyGuard } from './api-key.guard.js';

/** The setting of the Express application that has its guard. */
export const GUARD_SETTING = 'platform:guard';

/**
 * Middleware that admits what `@RequireScopes` admits to a handler, with the same errors and limits. For middleware that answers by
 * itself, which no guard of Nest precedes.
 *
 * @example `app.use('/queues', requireScopes('queues:write'), bullBoard.getRouter())`
 * @throws Error at once when a scope does not have the form thing:action
 */
export function requireScopes(...scopes: string[]): RequestHandler {
  RequireScopes(...scopes);
  return async (request, _response, next) => {
    await (request.app.get(GUARD_SETTING) as ApiKeyGuard).admitToMiddleware(request, scopes);
    next();
  };
}

import type { Express, RequestHandler, Response } from 'express';
import { ApiError, METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND } from '#errors';
import { refuseHiddenRoutes, routedMethods } from '#internals';
import type { Replies } from './replies/replies.js';

/**
 * Middleware after all routes. It answers the requests that no route served:
 *
 * - 404 `route_not_found` if no route has the path, or if the matching routes have passed the request on, as Nest's routes
 *   do for another host,
 * - 204 with `Allow` for OPTIONS on a path that has routes (RFC 9110, section 9.3.7), and with
 *   `Access-Control-Allow-Methods` for a preflight request of a known origin,
 * - 405 `method_not_allowed` with `Allow` for any other method (RFC 9110, section 15.5.6).
 *
 * @throws StartupError when a route of a module hides a path of the platform
 */
export function answerUnmatchedRoutes(app: Express, replies: Replies): RequestHandler {
  refuseHiddenRoutes(app);
  return (request, response, next) => {
    const allowed = allowedMethods(app, request.path);
    if (request.method === 'OPTIONS' && allowed.length > 0) {
      sendAllowed(response, allowed, replies);
    } else if (allowed.length === 0 || allowed.includes(request.method)) {
      next(new ApiError(ROUTE_NOT_FOUND, `No resource has the path ${request.path}`));
    } else {
      const message = `${request.method} is not supported here; use ${allowed.join(', ')}.`;
      next(new ApiError(METHOD_NOT_ALLOWED, message, { Allow: allowed.join(', ') }));
    }
  };
}

/**
 * Middleware before all routes, behind that of CORS. It serves requests that are refused before routing, so that
 * scripts of known origins can read the response, and preflight requests for paths that have routes. A handler of
 * OPTIONS or of all methods would require a key, which browsers do not send with preflight requests.
 */
export function answerBehindCors(app: Express, replies: Replies): RequestHandler {
  return (request, response, next) => {
    const { refusal } = request.context;
    if (refusal !== undefined) {
      replies.sendError(response, refusal);
      return;
    }
    const isPreflight = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
    const allowed = isPreflight ? allowedMethods(app, request.path) : [];
    if (allowed.length > 0) sendAllowed(response, allowed, replies);
    else next();
  };
}

function sendAllowed(response: Response, allowed: readonly string[], replies: Replies): void {
  response.setHeader('Allow', allowed.join(', '));
  // The CORS middleware cannot set this field: it knows the origins, but not the routes.
  if (response.hasHeader('Access-Control-Allow-Origin')) {
    response.setHeader('Access-Control-Allow-Methods', allowed.join(', '));
  }
  response.statusCode = 204;
  replies.send(response, undefined);
}

/** Methods that the routes of a path serve, HEAD and OPTIONS included; empty when no route has the path. */
function allowedMethods(app: Express, path: string): string[] {
  const methods = routedMethods(app, path);
  if (methods.length === 0) return [];
  return [...new Set([...methods, 'OPTIONS', ...(methods.includes('GET') ? ['HEAD'] : [])])].sort();
}

import type { Express, RequestHandler, Response } from 'express';
import { ApiError } from '../errors/api-error.js';
import { METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND } from '../errors/error-catalogue.js';
import type { Replies } from './replies/replies.js';

/**
 * Middleware after all routes. It answers the requests that no route served:
 *
 * - 404 `route_not_found` if no route has the path, or if the matching routes have passed the request on, as Nest's routes
 *   do for another host or version,
 * - 204 with `Allow` for OPTIONS on a path that has routes (RFC 9110, section 9.3.7), and with
 *   `Access-Control-Allow-Methods` for a preflight request of a known origin,
 * - 405 `method_not_allowed` with `Allow` for any other method (RFC 9110, section 15.5.6).
 */
export function answerUnmatchedRoutes(app: Express, replies: Replies): RequestHandler {
  return (request, response, next) => {
    const allowed = allowedMethods(app, request.path);
    if (allowed.length === 0) {
      next(new ApiError(ROUTE_NOT_FOUND, `No resource has the path ${request.path}`));
    } else if (allowed.includes(request.method) && request.method !== 'OPTIONS') {
      next(new ApiError(ROUTE_NOT_FOUND, `No resource has the path ${request.path} for this host and version`));
    } else if (request.method === 'OPTIONS') {
      sendAllowed(response, allowed, replies);
    } else {
      const message = `${request.method} is not supported here; use ${allowed.join(', ')}.`;
      next(new ApiError(METHOD_NOT_ALLOWED, message, { Allow: allowed.join(', ') }));
    }
  };
}

/**
 * Middleware before all routes. It answers preflight requests for paths that have routes. A handler of OPTIONS or of all
 * methods would require a key, which browsers do not send with preflight requests.
 */
export function answerPreflights(app: Express, replies: Replies): RequestHandler {
  return (request, response, next) => {
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
  const layers = app.router.stack as unknown as {
    match(path: string): unknown;
    route?: { methods: Record<string, boolean> };
  }[];
  const methods = new Set<string>();
  for (const layer of layers) {
    if (layer.route && layer.match(path)) {
      Object.keys(layer.route.methods).forEach((method) => methods.add(method.toUpperCase()));
    }
  }
  if (methods.size > 0) {
    methods.add('OPTIONS');
  }
  if (methods.has('GET')) {
    methods.add('HEAD');
  }
  return [...methods].sort();
}

import type { Express, RequestHandler, Response } from 'express';
import { ApiError, BAD_REQUEST, METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND } from '#errors';
import { BASE_PATH } from '#settings';
import { type Route, routesOf } from './express.internals.js';
import type { Replies } from './replies/replies.js';

/**
 * Middleware after all routes: 404 if no route has the path, or the matching ones have passed the request on; 204 with `Allow` for OPTIONS
 * (RFC 9110, section 9.3.7); 405 with `Allow` for any other method.
 */
export function answerUnmatchedRoutes(app: Express, replies: Replies): RequestHandler {
  return (request, response, next) => {
    const allowed = allowedMethods(app, request.path);
    if (request.method === 'OPTIONS' && allowed.length > 0) {
      sendAllowed(response, allowed, replies);
    } else if (allowed.length === 0 || allowed.includes(request.method)) {
      const isBelowBase = allowedMethods(app, `${BASE_PATH}${request.path}`).length > 0;
      const hint = isBelowBase ? `; one has ${BASE_PATH}${request.path}` : '';
      next(new ApiError(ROUTE_NOT_FOUND, `No resource has the path ${request.path}${hint}`));
    } else {
      const message = `${request.method} is not supported here; use ${allowed.join(', ')}.`;
      next(new ApiError(METHOD_NOT_ALLOWED, message, { Allow: allowed.join(', ') }));
    }
  };
}

/** A method as `Access-Control-Request-Method` names it (RFC 9110, section 9.1). */
const METHOD = /^[!#$%&'*+.^_`|~\w-]+$/;

/**
 * Middleware before all routes, behind that of CORS. It serves requests that are refused before routing, and preflight requests, whose
 * browsers send no key. A known origin may send any method to any path, so that its scripts can read the 404, 405, 414 or 503 of the
 * request itself. Other origins get what any OPTIONS gets.
 */
export function answerBehindCors(app: Express, replies: Replies): RequestHandler {
  return (request, response, next) => {
    const { refusal } = request.context;
    const method = request.method === 'OPTIONS' ? request.headers['access-control-request-method'] : undefined;
    // The CORS middleware knows the origins, but not the methods.
    const isGranted = method !== undefined && METHOD.test(method) && response.hasHeader('Access-Control-Allow-Origin');
    if (refusal !== undefined && (!isGranted || refusal.definition === BAD_REQUEST)) {
      replies.sendError(response, refusal);
      return;
    }
    const allowed = method === undefined ? [] : allowedMethods(app, request.path);
    if (isGranted) response.setHeader('Access-Control-Allow-Methods', [...new Set([...allowed, method])].join(', '));
    if (isGranted || allowed.length > 0) sendAllowed(response, allowed, replies);
    else next();
  };
}

function sendAllowed(response: Response, allowed: readonly string[], replies: Replies): void {
  if (allowed.length > 0) response.setHeader('Allow', allowed.join(', '));
  response.statusCode = 204;
  replies.send(response, undefined);
}

/**
 * Methods that the routes of a path serve, HEAD and OPTIONS included; those of all routes for `*` (RFC 9110, section 9.3.7). Empty
 * when no route has the path.
 */
function allowedMethods(app: Express, path: string): string[] {
  let routes: Route[] = [];
  try {
    routes = routesOf(app).filter((route) => path === '*' || route.matches(path));
  } catch (error) {
    // A path that Express cannot decode has no routes.
    if (!(error instanceof URIError)) throw error;
  }
  if (routes.length === 0) return [];
  const methods = routes.flatMap((route) => route.methods).map((method) => method.toUpperCase());
  return [...new Set([...methods, 'OPTIONS', ...(methods.includes('GET') ? ['HEAD'] : [])])].sort();
}

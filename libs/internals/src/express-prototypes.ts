import express, { type Express } from 'express';
import { IncomingMessage, type ServerOptions, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { logOtherInternals } from './other-internals.js';

/** Classes of requests and responses, as `http.createServer` takes them. */
export type MessageClasses = Required<
  Pick<ServerOptions<typeof IncomingMessage, typeof ServerResponse>, 'IncomingMessage' | 'ServerResponse'>
>;

/**
 * Creates classes whose requests and responses have the prototypes of an Express application from their construction on.
 *
 * Express sets the prototype of each request and response to `app.request` and `app.response` by `Object.setPrototypeOf`.
 * V8 then discards what it knows about the object's shape, which costs more than all the rest of Express. Here the
 * prototypes of the classes inherit from Express's and become the application's, so Express's assignment changes nothing.
 * All members that Express promises on `req` and `res` exist.
 *
 * If this version of Express sets other prototypes, logs one line and returns Node's classes; the application is unchanged.
 */
export function createMessageClasses(app: Express, createProbe: () => Express = express): MessageClasses {
  const difference = differenceOf(createProbe);
  if (difference === undefined) return adopt(app);
  logOtherInternals('express-prototypes', difference);
  return { IncomingMessage, ServerResponse };
}

/** Makes the classes, and makes their prototypes the application's. */
function adopt(app: Express): MessageClasses {
  // Real subclasses, so that V8 knows the object's final size in advance.
  class Request extends IncomingMessage {}
  class Response extends ServerResponse {}
  app.request = Object.setPrototypeOf(Request.prototype, app.request) as Express['request'];
  app.response = Object.setPrototypeOf(Response.prototype, app.response) as Express['response'];
  return { IncomingMessage: Request, ServerResponse: Response as typeof ServerResponse };
}

/** Lets an application without routes handle one request. Describes the difference to the expected behaviour, if any. */
function differenceOf(createProbe: () => Express): string | undefined {
  try {
    const app = createProbe();
    const { request, response } = app;
    if (!(request instanceof IncomingMessage) || !(response instanceof ServerResponse)) {
      return "Express's prototypes of requests and responses do not extend Node's";
    }
    const { IncomingMessage: Request, ServerResponse: Response } = adopt(app);
    const req = new Request(new Socket());
    const res = new Response(req);
    req.method = 'GET';
    req.url = '/';
    app(req as never, res as never, () => undefined);
    if (Object.getPrototypeOf(req) !== Request.prototype || Object.getPrototypeOf(res) !== Response.prototype) {
      return 'Express sets other prototypes than app.request and app.response';
    }
    return undefined;
  } catch (error) {
    return `Express fails on a trial request (${String(error)})`;
  }
}

import type { Express } from 'express';
import { IncomingMessage, type ServerOptions, ServerResponse } from 'node:http';

type MessageClasses = Required<
  Pick<ServerOptions<typeof IncomingMessage, typeof ServerResponse>, 'IncomingMessage' | 'ServerResponse'>
>;

/**
 * Creates classes whose requests and responses have the prototypes of an Express application from their construction on. Express sets
 * these by `Object.setPrototypeOf` for each request: V8 then discards what it knows about the object's shape, which costs more than all
 * the rest of Express. Here that assignment changes nothing.
 */
export function createMessageClasses(app: Express): MessageClasses {
  // Real subclasses, so that V8 knows the object's final size in advance.
  class Request extends IncomingMessage {}
  class Response extends ServerResponse {}
  app.request = Object.setPrototypeOf(Request.prototype, app.request) as Express['request'];
  app.response = Object.setPrototypeOf(Response.prototype, app.response) as Express['response'];
  return { IncomingMessage: Request, ServerResponse: Response as typeof ServerResponse };
}

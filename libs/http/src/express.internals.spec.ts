import express, { type RequestHandler } from 'express';
import { misfit } from '#runtime';
import { EXPRESS_ROUTER, takeMiddleware } from './express.internals.js';

const middleware: RequestHandler = (_request, _response, next) => next();

test('the router of Express is as known', () => {
  expect(EXPRESS_ROUTER.check()).toBeUndefined();
});

test('the router is as known also if a tool wraps what handles its middleware', () => {
  const { use } = express.application;
  express.application.use = function (this: express.Express, ...handlers: never[]) {
    Reflect.apply(use, this, handlers);
    const layer = this.router.stack.at(-1) as { handle: RequestHandler };
    const { handle } = layer;
    layer.handle = (request, response, next) => handle(request, response, next);
    return this;
  } as unknown as typeof use;
  const difference = EXPRESS_ROUTER.check();
  express.application.use = use;
  expect(difference).toBeUndefined();
});

test('middleware that is taken off comes back in front of all others', () => {
  const app = express().use(middleware);
  const putBack = takeMiddleware(app);
  expect(app.router.stack).toEqual([]);
  app.use((_request, _response, next) => next());
  putBack();
  expect(app.router.stack.map(({ handle }) => handle === middleware)).toEqual([true, false]);
});

test.each([0, 2])('an application with %d middleware is refused', (count) => {
  const app = express();
  for (let index = 0; index < count; index++) app.use(middleware);
  expect(() => takeMiddleware(app)).toThrow(
    misfit([`@nestjs/platform-express: its constructor registers ${count} middleware, not one`]),
  );
});

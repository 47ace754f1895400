import express, { type RequestHandler } from 'express';
import { asMiddleware, routesOf, takeMiddleware } from './express.internals.js';

const middleware: RequestHandler = (_request, _response, next) => next();

test('the routes of an application are known with their methods, and none of middleware', () => {
  const app = express();
  app.get('/toys/:id', middleware);
  app.post('/toys', middleware);
  asMiddleware(app, () => app.all('/{*path}', middleware));
  const routes = routesOf(app).map(({ path, methods, matches }) => [path, methods, matches('/toys/1')]);
  expect(routes).toEqual([
    ['/toys/:id', ['get'], true],
    ['/toys', ['post'], false],
  ]);
});

test('middleware that is taken off comes back in front of all others', () => {
  const app = express().use(middleware);
  const putBack = takeMiddleware(app);
  expect(app.router.stack).toEqual([]);
  app.use((_request, _response, next) => next());
  putBack();
  expect(app.router.stack.map(({ handle }) => handle === middleware)).toEqual([true, false]);
});

import express, { type Express, type Request, type Response } from 'express';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { createMessageClasses } from './express-prototypes.internals.js';

/** Sends requests, each on a new connection, and returns all bytes of the responses, without the date. */
async function answersOf(server: Server, requests: readonly string[]): Promise<string[]> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const answers: string[] = [];
  for (const request of requests) {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1');
    socket.write(request);
    answers.push((await socket.toArray()).join('').replace(/^Date: .{3}, .* GMT\r$/m, 'Date: now\r'));
  }
  await new Promise((resolve) => server.close(resolve));
  return answers;
}

describe('requests and responses of an Express application', () => {
  const handlers: [string, (request: Request, response: Response) => unknown][] = [
    [
      'set, get and append',
      (_, res) =>
        res
          .set({ A: '1', b: ['2', '3'] })
          .append('a', '4')
          .append('Link', '<x>')
          .send(`${String(res.get('A'))} ${String(res.get('B'))}`),
    ],
    [
      'request',
      (req, res) =>
        res.json([
          ...[req.get('Host'), req.header('referer'), req.ip, req.hostname, req.path, req.query, req.fresh],
          ...[req.accepts(['json', 'html']), req.range(100), req.route !== undefined],
        ]),
    ],
    [
      'each other',
      (req, res) => res.json([req.res === res, res.req === req, req.app === res.app, req.app.get('name'), res.locals]),
    ],
  ];
  const requests = [
    '/?b=1&b=2 HTTP/1.1\r\nHost: orders.example:80\r\nAccept: text/plain',
    '/ HTTP/1.1\r\nHost: x\r\nIf-None-Match: "a"\r\nReferrer: y\r\nRange: bytes=0-5',
    '/ HTTP/1.0',
  ].flatMap((request) => ['GET', 'HEAD'].map((method) => `${method} ${request}\r\nConnection: close\r\n\r\n`));

  function createApp(handler: (request: Request, response: Response) => unknown): Express {
    const app = express();
    app.set('name', 'of the test').set('env', 'test');
    app.locals['a'] = 1;
    app.use((_, response, next) => {
      response.locals['b'] = 2;
      next();
    });
    return app.get('/', (request, response) => void handler(request, response));
  }

  test.each(handlers)("give the responses of Express's own: %s", async (_, handler) => {
    const expected = await answersOf(createServer(createApp(handler)), requests);
    expect(expected.every((answer) => /^HTTP\/1\.1 \d{3} /.test(answer))).toBe(true);
    const app = createApp(handler);
    expect(await answersOf(createServer(createMessageClasses(app), app), requests)).toEqual(expected);
  });

  test('requests and responses keep the prototypes with which they were made', () => {
    const app = express();
    const classes = createMessageClasses(app);
    const request = Object.assign(new classes.IncomingMessage(new Socket()), { method: 'GET', url: '/' });
    const response = new classes.ServerResponse(request);
    const paths: string[] = [];
    app.use(({ path }) => void paths.push(path));
    app(request as Request, response as Response);
    expect(paths).toEqual(['/']);
    expect(Object.getPrototypeOf(request)).toBe(classes.IncomingMessage.prototype);
    expect(Object.getPrototypeOf(response)).toBe(classes.ServerResponse.prototype);
  });
});

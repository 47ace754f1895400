import { createServer, type IncomingMessage } from 'node:http';
import { NODE_HTTP } from './node-http.internals.js';

type Actions = NonNullable<Parameters<typeof NODE_HTTP.check>[0]>;

const ignore = (): void => undefined;

test('the HTTP server of this Node.js acts as known', async () => {
  expect(await NODE_HTTP.check()).toBeUndefined();
});

test.each<[actions: Actions, difference: RegExp]>([
  // A server of Node as it is: it serves connections at once, and switches to every protocol.
  [
    { createSteeredServer: (options) => ({ server: createServer(options), serve: ignore }) },
    /\(toy: upgrade, served at once, websocket: upgrade/,
  ],
  [{ stopListening: (server) => server.close() }, /idle: response, closed/],
  [{ beforeFirstRead: ignore }, /unread, chunk a/],
  [{ beforeFirstRead: (_: IncomingMessage, begin) => begin() }, /body: request, read, unread/],
  [{ filterChunks: ignore }, /data a, data b/],
  [{ stopReading: ignore }, /chunk b, chunk c/],
])('another Node.js is noticed: %o', async (actions, difference) => {
  expect(await NODE_HTTP.check(actions)).toMatch(difference);
});

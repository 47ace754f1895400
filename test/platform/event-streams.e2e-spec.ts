import { Module, NotFoundException, Sse } from '@nestjs/common';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { concat, interval, map, NEVER, Observable, of } from 'rxjs';
import { ApiKeysService } from '#access';
import { RequireScopes } from '#operations';
import { MAX_STREAMS_PER_KEY } from '../../libs/access/src/event-streams.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { until } from '../support/until.js';

/* Event streams: their end. `ordinary-nest` compares their answers with stock Nest. */

/** The number of observables that have a subscriber. */
let subscribed = 0;

const events = (): Observable<string> =>
  new Observable((subscriber) => {
    subscribed++;
    const sent = concat(of('first'), interval(5).pipe(map((count) => `event ${count}`))).subscribe(subscriber);
    return () => {
      subscribed--;
      sent.unsubscribe();
    };
  });

const STREAMS = new Handlers('test-streams');
STREAMS.sse('open', events);
STREAMS.sse('failing', () => sleep(50).then(() => Promise.reject(new NotFoundException())));
STREAMS.sse('quiet', () => NEVER);
STREAMS.add(Sse('closed'), 'closed', events, { decorators: [RequireScopes()] });
STREAMS.get('ordinary', () => 'ordinary');

@Module({ controllers: [STREAMS.controller] })
class StreamsModule {}

/** Opens a stream, of which the client notes its text and its end. */
async function open(app: TestApp, path: string, apiKey?: string) {
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const call = get({ port: app.port, path: `/v1/test-streams/${path}`, headers });
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  const ended = new Promise((resolve) => answer.on('error', () => undefined).on('close', resolve));
  const stream = { status: answer.statusCode, text: '', isOpen: true, ended, close: () => answer.destroy() };
  answer.setEncoding('utf8').on('data', (chunk: string) => (stream.text += chunk));
  void ended.then(() => (stream.isOpen = false));
  return stream;
}

test('streams do not count as requests in flight, need a key, and end with their client', async () => {
  const app = await createTestApp({ features: [StreamsModule], settings: { MAX_REQUESTS_IN_FLIGHT: '1' } });
  const streams = [await open(app, 'open'), await open(app, 'open')];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  expect((await app.client.get('/v1/test-streams/ordinary')).status).toBe(200);
  expect((await app.client.get('/v1/test-streams/closed', { apiKey: null })).status).toBe(401);
  // No interceptor of the platform makes Nest begin the stream before the handler has decided.
  expect((await app.client.get('/v1/test-streams/failing')).status).toBe(404);
  expect(subscribed).toBe(2);
  for (const stream of streams) stream.close();
  await until(() => subscribed === 0);
  await app.close();
});

test('streams are cut when the server stops listening, and the stop does not wait for them', async () => {
  const app = await createTestApp({ features: [StreamsModule], settings: { SHUTDOWN_DELAY_MS: '200' } });
  const streams = await Promise.all(['open', 'quiet', 'open'].map((path) => open(app, path)));
  await until(() => streams[0]?.text.includes('data: first') ?? false);
  const closed = app.close();
  // During SHUTDOWN_DELAY_MS load balancers may still open new streams.
  streams.push(await open(app, 'open'));
  expect(subscribed).toBe(3);
  await closed;
  expect(app.log.text).not.toContain('Cutting');
  await Promise.all(streams.map((stream) => stream.ended));
  expect(subscribed).toBe(0);
});

test('a stream ends when its key is revoked or expires, and no other does', async () => {
  const app = await createTestApp({ features: [StreamsModule] });
  const keys = app.nest.get(ApiKeysService);
  const expiresAt = new Date(Date.now() + 3_600_000);
  const expiring = await open(app, 'closed', (await keys.create({ client: 'expiring', expiresAt })).secret);
  const { key, secret } = await keys.create({ client: 'revoked' });
  const revoked = [await open(app, 'closed', secret), await open(app, 'closed', secret)];
  const kept = await open(app, 'closed', app.apiKey);
  await keys.revoke(String(key.id));
  await Promise.all(revoked.map(({ ended }) => ended));
  expect([expiring.isOpen, kept.isOpen]).toEqual([true, true]);
  app.clock.travelTo(expiresAt);
  await expiring.ended;
  const { length } = kept.text;
  await until(() => kept.text.length > length);
  await app.close();
});

test('429 rate_limited: another stream of a key that has 100 open', async () => {
  const app = await createTestApp({ features: [StreamsModule] });
  const { secret } = await app.nest.get(ApiKeysService).create({ client: 'streaming' });
  const count = Array.from({ length: MAX_STREAMS_PER_KEY });
  const streams = await Promise.all(count.map(() => open(app, 'closed', secret)));
  const refused = await app.client.get('/v1/test-streams/closed', { apiKey: secret });
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '10']);
  const others = [await open(app, 'closed', app.apiKey)];
  streams.pop()?.close();
  await until(async () => {
    const stream = await open(app, 'closed', secret);
    others.push(stream);
    return stream.status === 200;
  });
  for (const stream of [...streams, ...others]) stream.close();
  await app.close();
});

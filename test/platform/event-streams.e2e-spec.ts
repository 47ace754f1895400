import { Controller, Get, Module, Sse } from '@nestjs/common';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { concat, interval, map, NEVER, Observable, of } from 'rxjs';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { until } from '../support/until.js';

/* Event streams: their end. `ordinary-nest` compares their answers with stock Nest. */

@Controller('test-streams')
class TestStreamsController {
  /** The number of observables that have a subscriber. */
  subscribed = 0;

  @Sse('open')
  @Public()
  open(): Observable<string> {
    return this.startingWith('first');
  }

  @Sse('late')
  @Public()
  async late(): Promise<Observable<string>> {
    await sleep(500);
    return this.startingWith('late');
  }

  private startingWith(first: string): Observable<string> {
    return new Observable((subscriber) => {
      this.subscribed++;
      const events = concat(of(first), interval(5).pipe(map((count) => `event ${count}`))).subscribe(subscriber);
      return () => {
        this.subscribed--;
        events.unsubscribe();
      };
    });
  }

  @Sse('quiet')
  @Public()
  quiet(): Observable<string> {
    return NEVER;
  }

  @Sse('closed')
  closed(): Observable<string> {
    return this.open();
  }

  @Get('ordinary')
  @Public()
  ordinary(): string {
    return 'ordinary';
  }
}

@Module({ controllers: [TestStreamsController] })
class StreamsModule {}

/** A stream that a client has open. */
class Stream {
  text = '';
  readonly ended: Promise<void>;

  private constructor(private readonly answer: IncomingMessage) {
    answer.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    this.ended = new Promise((resolve) => answer.on('error', () => undefined).on('close', resolve));
  }

  static open(app: TestApp, path: string): Promise<Stream> {
    return new Promise((resolve, reject) => {
      request({ port: app.port, path: `/v1/test-streams/${path}` }, (answer) => resolve(new Stream(answer)))
        .on('error', reject)
        .end();
    });
  }

  get status(): number | undefined {
    return this.answer.statusCode;
  }

  close(): void {
    this.answer.destroy();
  }
}

test('streams do not count as requests in flight, need a key, and end with their client', async () => {
  const app = await createTestApp({ features: [StreamsModule], settings: { MAX_REQUESTS_IN_FLIGHT: '1' } });
  const controller = app.nest.get(TestStreamsController);
  const streams = [await Stream.open(app, 'open'), await Stream.open(app, 'open')];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  expect((await app.client.get('/v1/test-streams/ordinary')).status).toBe(200);
  expect((await app.client.get('/v1/test-streams/closed', { apiKey: null })).status).toBe(401);
  expect(controller.subscribed).toBe(2);
  for (const stream of streams) stream.close();
  await until(() => controller.subscribed === 0);
  await app.close();
});

test('streams are cut when the server stops listening, and the stop does not wait for them', async () => {
  const app = await createTestApp({ features: [StreamsModule], settings: { SHUTDOWN_DELAY_MS: '200' } });
  const controller = app.nest.get(TestStreamsController);
  const late = Stream.open(app, 'late');
  const streams = await Promise.all(['open', 'quiet', 'open'].map((path) => Stream.open(app, path)));
  await until(() => streams[0]?.text.includes('data: first') ?? false);
  const startedAt = performance.now();
  const closed = app.close();
  // During SHUTDOWN_DELAY_MS load balancers may still open new streams.
  streams.push(await Stream.open(app, 'open'));
  expect(controller.subscribed).toBe(3);
  await closed;
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await Promise.all([...streams, await late].map((stream) => stream.ended));
  expect((await late).text).toContain('data: late');
  expect(controller.subscribed).toBe(0);
});

import { Controller, Get, Module, Sse } from '@nestjs/common';
import { jest } from '@jest/globals';
import type { Response } from 'express';
import { EventEmitter } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { concat, interval, map, NEVER, Observable, of } from 'rxjs';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { EventStreams } from '../../src/platform/server/event-streams.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* Event streams: their limit and their end. `ordinary-nest` compares their answers with stock Nest. */

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

  /** Fewer characters than Nest buffers for a client that does not read, but more bytes than sockets buffer. */
  @Sse('large')
  @Public()
  large(): Observable<string> {
    return this.startingWith('€'.repeat(3_900_000));
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
  /** Whether the answer ended as it should; false when the connection was cut. */
  readonly ended: Promise<boolean>;

  private constructor(private readonly answer: IncomingMessage) {
    answer.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    this.ended = new Promise((resolve) =>
      answer.on('error', () => undefined).on('close', () => resolve(answer.complete)),
    );
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

async function until(condition: () => boolean): Promise<void> {
  for (let waits = 0; !condition(); waits++) {
    if (waits > 500) throw new Error('The condition was not met within 5 s.');
    await sleep(10);
  }
}

test('503 unavailable beyond the limit, and the end of a stream admits another', () => {
  const streams = new EventStreams({}, 30_000, 2);
  const responses = [1, 2, 3].map(() => new EventEmitter() as never as Response);
  for (const response of responses.slice(0, 2)) streams.add(response);
  expect(() => streams.add(responses[2]!)).toThrow(
    expect.objectContaining({ unavailableCause: 'event_streams' }) as Error,
  );
  responses[0]!.emit('close');
  streams.add(responses[2]!);
});

describe('streams beside requests', () => {
  let app: TestApp;
  let controller: TestStreamsController;
  beforeAll(async () => {
    app = await createTestApp({
      features: [StreamsModule],
      settings: { MAX_REQUESTS_IN_FLIGHT: '1' },
      limits: { writeTimeoutMs: 300 },
    });
    controller = app.nest.get(TestStreamsController);
  });
  afterAll(() => app.close());

  test('streams do not count as requests in flight, and need a key', async () => {
    const add = jest.spyOn(EventStreams.prototype, 'add');
    const streams = [await Stream.open(app, 'open'), await Stream.open(app, 'open')];
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    expect((await app.client.get('/v1/test-streams/ordinary')).status).toBe(200);
    expect((await app.client.get('/v1/test-streams/closed', { apiKey: null })).status).toBe(401);
    expect(add).toHaveBeenCalledTimes(2);
    expect(controller.subscribed).toBe(2);
    for (const stream of streams) stream.close();
    await until(() => controller.subscribed === 0);
  });

  test('a client that reads none of its events is disconnected, and a quiet stream stays open', async () => {
    const quiet = await Stream.open(app, 'quiet');
    const client = connect(app.port, '127.0.0.1').pause();
    client.write('GET /v1/test-streams/large HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => controller.subscribed === 1);
    await until(() => controller.subscribed === 0);
    client.destroy();
    expect(await Promise.race([quiet.ended, sleep(0, 'open')])).toBe('open');
    quiet.close();
  });
});

describe('the end of the service', () => {
  test('streams end when the server stops listening, and the stop does not wait for them', async () => {
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
    expect(await Promise.all([...streams, await late].map((stream) => stream.ended))).toEqual(Array(5).fill(true));
    expect((await late).status).toBe(200);
    expect(controller.subscribed).toBe(0);
  });
});

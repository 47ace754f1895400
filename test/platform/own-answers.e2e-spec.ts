import {
  Get,
  Header,
  HttpCode,
  HttpException,
  Module,
  NotFoundException,
  Post,
  Redirect,
  Res,
  Sse,
  StreamableFile,
} from '@nestjs/common';
import type { Response } from 'express';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { concat, interval, map, NEVER, Observable, of } from 'rxjs';
import { ApiKeysService } from '#access';
import { RequireScopes } from '#operations';
import { MAX_STREAMS_PER_KEY } from '../../libs/access/src/event-streams.js';
import { type Declared, Handlers, type Parameter } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';
import { until } from '../support/until.js';

/*
 * Answers in every way that Nest and Express offer, their length, and the end of event streams. `ordinary-nest` compares them with stock
 * Nest.
 */

let passed = Promise.resolve();
let waiting = 0;

const OWN = new Handlers('test-own');
const RESPONSE: Declared = { parameters: [[Res(), Object]] };
const PASSED: Parameter[] = [[Res({ passthrough: true }), Object]];
/** A handler that first waits for `passed`. */
function addWaiting(
  name: string,
  answer: (response: Response) => unknown,
  declared?: Declared,
  route = Get(name),
): void {
  const handle = async (response: Response): Promise<unknown> => {
    waiting++;
    await passed;
    return answer(response);
  };
  OWN.add(route, name, handle, declared);
}
addWaiting('nothing', () => undefined);
addWaiting('json', () => ({ name: 'Zoë 🐕' }));
addWaiting('cached', () => 'cached', { decorators: [Header('Cache-Control', 'public, max-age=60')] });
addWaiting('res-json', (response) => void response.json({ by: 'Express' }), RESPONSE);
addWaiting('res-end', (response) => void response.setHeader('Connection', 'keep-alive').end('by Node'), RESPONSE);
addWaiting(
  'res-head',
  (response) => void response.writeHead(200, ['Content-Type', 'text/plain', 'Content-Length', '4']).end('head'),
  RESPONSE,
);
addWaiting('redirect', () => undefined, { decorators: [Redirect('/v1/test-own/json')] });
addWaiting('stream', () => new StreamableFile(Readable.from([Buffer.from('a '), Buffer.from('stream')])));
addWaiting('events', () => of({ data: 'event' }), {}, Sse('events'));
OWN.get('endless', (response: Response) => void response.write('first '), {}, RESPONSE);
OWN.get('text', () => 'Zoë 🐕');
OWN.get('no-content', () => undefined, {}, { decorators: [HttpCode(204)] });
OWN.get(
  'length-of-another',
  (response: Response) => {
    if (response.hasHeader('Content-Length')) throw new Error('The response of three bytes fails.');
    return 'one';
  },
  {},
  { parameters: PASSED, decorators: [Header('Content-Length', '3')] },
);
OWN.get(
  'range',
  (response: Response) => {
    response.setHeader('Accept-Ranges', 'bytes').setHeader('Content-Range', 'bytes */4').setHeader('ETag', '"1"');
    throw new HttpException('The file has four bytes.', 416);
  },
  {},
  { parameters: PASSED },
);
OWN.add(Post('unread'), 'unread', () => 'unread');
OWN.add(Post('by-itself'), 'by-itself', (response: Response) => response.status(201).send('not read'), RESPONSE);
OWN.add(Post('unread-for-a-while'), 'unread-for-a-while', () => sleep(20, 'unread'));

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
OWN.sse('open', events);
OWN.sse('failing', () => sleep(50).then(() => Promise.reject(new NotFoundException())));
OWN.sse('quiet', () => NEVER);
OWN.add(Sse('closed'), 'closed', events, { decorators: [RequireScopes()] });

@Module({ controllers: [OWN.controller] })
class OwnAnswersModule {}

const PRIVATE = 'private, no-cache';
const KINDS: [path: string, status: number, cacheControl: string][] = [
  ['nothing', 200, PRIVATE],
  ['json', 200, PRIVATE],
  ['cached', 200, 'public, max-age=60'],
  ['res-json', 200, PRIVATE],
  ['res-end', 200, PRIVATE],
  ['res-head', 200, PRIVATE],
  ['redirect', 302, 'no-store'],
  ['stream', 200, PRIVATE],
  ['events', 200, 'private, no-cache, no-store, must-revalidate, max-age=0, no-transform'],
];

const start = (settings: Record<string, string>): Promise<TestApp> =>
  createTestApp({ features: [OwnAnswersModule], settings });

let app: TestApp;
beforeAll(async () => (app = await start({ MAX_REQUESTS_IN_FLIGHT: '5' })));
afterAll(() => app.close());

/** The head of a request without further fields. */
const headOf = (path: string, method = 'GET', version = '1.1'): string =>
  `${method} /v1/test-own/${path} HTTP/${version}\r\nHost: x\r\n`;
const CLOSE = 'Connection: close\r\n\r\n';

describe('a response that a handler writes itself', () => {
  test.each(KINDS)('has Cache-Control and Vary: %s', async (path, status, cacheControl) => {
    const { headers, ...answer } = await app.client.get(`/v1/test-own/${path}`, { apiKey: null });
    expect([answer.status, headers['cache-control']]).toEqual([status, cacheControl]);
    expect(headers.vary?.includes('Authorization') ?? false).toBe(status === 200);
    expect(headers['x-request-id']).toBeDefined();
    if (status === 200 && path !== 'events') {
      const head = await app.client.send('HEAD', `/v1/test-own/${path}`, { apiKey: null });
      expect([head.status, head.headers['cache-control']]).toEqual([status, cacheControl]);
    }
  });

  test('stops counting as in flight when it begins', async () => {
    const call = (): Promise<globalThis.Response> => fetch(`${app.origin}/v1/test-own/endless`);
    const answers = await Promise.all(Array.from({ length: 10 }, call));
    expect((await app.client.get('/v1/pets')).status).toBe(200);
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    for (const { body } of answers) await body?.cancel();
  });
});

test('every response of a draining server closes its connection, however it is written', async () => {
  const draining = await start({ SHUTDOWN_DELAY_MS: '1000' });
  let go!: () => void;
  passed = new Promise((resolve) => (go = resolve));
  waiting = 0;
  // An event stream announces `keep-alive` itself, and is cut when the server stops listening.
  const kinds = KINDS.flatMap(([path]) => (path === 'events' ? [] : path));
  const begin = (): Promise<string>[] => kinds.map((path) => rawRequest(draining.port, `${headOf(path)}\r\n`));
  const begunBefore = begin();
  await until(() => waiting === kinds.length);
  const closed = draining.close();
  await until(async () => (await draining.client.get('/health/ready')).status === 503);
  const begunAfter = begin();
  await until(() => waiting === 2 * kinds.length);
  go();
  for (const answers of [await Promise.all(begunBefore), await Promise.all(begunAfter)]) {
    for (const [index, answer] of answers.entries()) {
      const [head = ''] = answer.split('\r\n\r\n');
      expect([kinds[index], head.match(/^Connection: .*$/gim)]).toEqual([kinds[index], ['Connection: close']]);
    }
  }
  await closed;
});

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Decoded as latin1, so that its length is the number of its bytes. */
  readonly body: string;
}

/** Sends bytes, and returns everything that comes back until the server closes the connection. */
const exchange = (bytes: string, options?: Parameters<typeof rawRequest>[2]): Promise<string> =>
  rawRequest(app.port, bytes, options);

async function ask(method: string, path: string, version = '1.1', field = ''): Promise<Answer> {
  return parse(await exchange(headOf(path, method, version) + field + CLOSE));
}

function parse(answer: string): Answer {
  const end = answer.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = answer.slice(0, end).split('\r\n');
  const headers = lines.map((line) => [line.split(':', 1)[0]?.toLowerCase(), line.replace(/^[^:]*: */, '')]);
  expect(new Set(headers.map(([name]) => name)).size).toBe(headers.length);
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: answer.slice(end + 4),
  };
}

/** Expects responses on one connection, each with the length of its body. */
function expectAnswers(received: string, ...expected: [status: number, connection: string][]): void {
  const answers = received.split(/(?=HTTP\/1\.1 )/).map(parse);
  expect(answers.map(({ status, headers }) => [status, headers['connection']])).toEqual(expected);
  for (const { headers, body } of answers) expect(headers['content-length']).toBe(String(body.length));
}

describe('Content-Length', () => {
  test.each(['json', 'text', 'nothing', 'nowhere'])(
    'is sent once, in bytes, to GET and HEAD of HTTP/1.1 and HTTP/1.0: %s',
    async (path) => {
      const get = await ask('GET', path);
      expect(get.headers['content-length']).toBe(String(get.body.length));
      expect(get.headers['transfer-encoding']).toBeUndefined();
      expect(get.body === '').toBe(path === 'nothing');
      for (const [method, version] of [
        ['HEAD', '1.1'],
        ['GET', '1.0'],
        ['HEAD', '1.0'],
      ] as const) {
        const { 'content-length': length, 'content-type': type } = get.headers;
        expect(await ask(method, path, version)).toMatchObject({
          ...{ status: get.status, body: method === 'HEAD' ? '' : get.body },
          headers: { 'content-length': length, ...(type === undefined ? {} : { 'content-type': type }) },
        });
      }
    },
  );

  test('of an error fits its body, also when the handler has set a different one before it failed', async () => {
    const { status, headers, body } = await ask('GET', 'length-of-another');
    expect([status, headers['content-length']]).toEqual([500, String(body.length)]);
  });

  test.each(['1.1', '1.0'])('is not sent with 204 and 304, HTTP/%s', async (version) => {
    const { etag = '' } = (await ask('GET', 'json')).headers;
    expect(etag).toMatch(/^W\/"/);
    for (const method of ['GET', 'HEAD']) {
      for (const [path, status] of [
        ['no-content', 204],
        ['json', 304],
      ] as const) {
        const { headers, ...answer } = await ask(method, path, version, `If-None-Match: ${etag}\r\n`);
        expect(answer).toEqual({ status, body: '' });
        expect([headers['content-length'], headers['transfer-encoding']]).toEqual([undefined, undefined]);
      }
    }
  });

  test.each(['json', 'nothing'])('lets an HTTP/1.0 client keep its connection: %s', async (path) => {
    const last = headOf(path, 'GET', '1.0');
    const request = `${last}Connection: keep-alive\r\n\r\n`;
    const received = await exchange(`${request}${request}${last}\r\n`);
    expectAnswers(received, [200, 'keep-alive'], [200, 'keep-alive'], [200, 'close']);
  });

  test.each([
    ['unread', 201],
    ['by-itself', 201],
    ['nowhere', 404],
  ])('is sent when the response precedes the rest of the request: %s', async (path, status) => {
    const framings = [
      'Content-Length: 100\r\n\r\nhalf',
      'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      'Expect: 100-continue\r\nContent-Length: 9\r\n\r\n',
    ];
    const received = await Promise.all(framings.map((framing) => exchange(headOf(path, 'POST') + framing)));
    for (const answer of received) {
      // A handler gets the request when its sender is told to go on.
      const last = answer.replace('HTTP/1.1 100 Continue\r\n\r\n', '');
      expectAnswers(last, [status, 'close']);
      expect(parse(last).headers['transfer-encoding']).toBeUndefined();
    }
  });

  test('is sent, and the connection kept, when the unread body has arrived before the response', async () => {
    const request = `${headOf('unread-for-a-while', 'POST')}Content-Length: 4\r\n\r\nbody`;
    expectAnswers(await exchange(request + headOf('json') + CLOSE), [201, 'keep-alive'], [200, 'close']);
  });
});

describe('a request without content', () => {
  const CHUNKED = `${headOf('json')}Transfer-Encoding: chunked\r\n\r\n`;

  test('a HEAD whose body never comes is answered before a client could send it', async () => {
    const ended: string[] = [];
    const send = async (method: string, path: string): Promise<string> => {
      const answer = await exchange(`${headOf(path, method)}Content-Length: 9\r\n\r\n`);
      ended.push(method);
      return answer;
    };
    const [, head] = await Promise.all([send('POST', 'unread'), send('HEAD', 'json')]);
    expect(ended).toEqual(['HEAD', 'POST']);
    expect(head).toMatch(/^HTTP\/1\.1 200 [^]+\r\n\r\n$/);
  });

  test('a HEAD that the parser refuses gets the head alone', async () => {
    const refused = (method: string): Promise<string> =>
      exchange(`${headOf('json', method)}X-Large: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(await refused('HEAD')).toMatch(/^HTTP\/1\.1 431 [^]+\r\nContent-Length: [1-9]\d+\r\n[^{]+\r\n\r\n$/);
    expect(await refused('GET')).toMatch(/\r\n\r\n\{"code":"headers_too_large"/);
  });

  test('a GET whose empty chunked body ends later keeps its connection', async () => {
    const then = { after: 'HTTP', send: `0\r\n\r\n${headOf('text')}${CLOSE}` };
    expectAnswers(await exchange(CHUNKED, { then }), [200, 'keep-alive'], [200, 'close']);
  });

  test('… and one whose chunked body does not end is cut', async () => {
    expect(parse(await exchange(CHUNKED)).status).toBe(200);
  });

  test('a 416 keeps the fields that explain it', async () => {
    const { status, headers } = await ask('GET', 'range');
    expect([status, headers]).toMatchObject([416, { 'accept-ranges': 'bytes', 'content-range': 'bytes */4' }]);
    expect(headers).not.toHaveProperty('etag');
  });
});

describe('event streams', () => {
  /** Opens a stream, of which the client notes its text and its end. */
  async function open(path: string, apiKey?: string, { port } = app) {
    const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const call = get({ port, path: `/v1/test-own/${path}`, headers });
    const [answer] = (await once(call, 'response')) as [IncomingMessage];
    const ended = new Promise((resolve) => answer.on('error', () => undefined).on('close', resolve));
    const stream = { status: answer.statusCode, text: '', isOpen: true, ended, close: () => answer.destroy() };
    answer.setEncoding('utf8').on('data', (chunk: string) => (stream.text += chunk));
    void ended.then(() => (stream.isOpen = false));
    return stream;
  }

  test('do not count as requests in flight, need a key, and end with their client', async () => {
    const streams = await Promise.all(Array.from({ length: 6 }, () => open('open')));
    expect(streams.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect((await app.client.get('/v1/test-own/text')).status).toBe(200);
    expect((await app.client.get('/v1/test-own/closed', { apiKey: null })).status).toBe(401);
    // No interceptor of the platform makes Nest begin the stream before the handler has decided.
    expect((await app.client.get('/v1/test-own/failing')).status).toBe(404);
    expect(subscribed).toBe(6);
    for (const stream of streams) stream.close();
    await until(() => subscribed === 0);
  });

  test('are cut when the server stops listening, and the stop does not wait for them', async () => {
    const stopping = await start({ SHUTDOWN_DELAY_MS: '200' });
    const paths = ['open', 'quiet', 'open'];
    const streams = await Promise.all(paths.map((path) => open(path, undefined, stopping)));
    await until(() => streams[0]?.text.includes('data: first') ?? false);
    const closed = stopping.close();
    // During SHUTDOWN_DELAY_MS load balancers may still open new streams.
    streams.push(await open('open', undefined, stopping));
    expect(subscribed).toBe(3);
    await closed;
    expect(stopping.log.text).not.toContain('Cutting');
    await Promise.all(streams.map((stream) => stream.ended));
    expect(subscribed).toBe(0);
  });

  test('end when their key is revoked or expires, and no others do', async () => {
    const keys = app.nest.get(ApiKeysService);
    const expiresAt = new Date(Date.now() + 3_600_000);
    const expiring = await open('closed', (await keys.create({ client: 'expiring', expiresAt })).secret);
    const { key, secret } = await keys.create({ client: 'revoked' });
    const revoked = [await open('closed', secret), await open('closed', secret)];
    const kept = await open('closed', app.apiKey);
    await keys.revoke(String(key.id));
    await Promise.all(revoked.map(({ ended }) => ended));
    expect([expiring.isOpen, kept.isOpen]).toEqual([true, true]);
    app.clock.travelTo(expiresAt);
    await expiring.ended;
    const { length } = kept.text;
    await until(() => kept.text.length > length);
    app.clock.comeBack();
    kept.close();
  });

  test('429 rate_limited: another one of a key that has 100 open', async () => {
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'streaming' });
    const streams = [];
    while (streams.length < MAX_STREAMS_PER_KEY) streams.push(await open('closed', secret));
    const refused = await app.client.get('/v1/test-own/closed', { apiKey: secret });
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '10']);
    const others = [await open('closed', app.apiKey)];
    streams.pop()?.close();
    await until(async () => {
      const stream = await open('closed', secret);
      others.push(stream);
      return stream.status === 200;
    });
    for (const stream of [...streams, ...others]) stream.close();
  });
});

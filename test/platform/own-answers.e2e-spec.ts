import { Get, Header, Module, Redirect, Res, Sse, StreamableFile } from '@nestjs/common';
import type { Response } from 'express';
import { Readable } from 'node:stream';
import { of } from 'rxjs';
import { type Declared, Handlers, type Parameter } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';
import { until } from '../support/until.js';

/* Answers in every way that Nest and Express offer. Most handlers first wait for `passed`. */

let passed = Promise.resolve();
let waiting = 0;

const OWN = new Handlers('test-own');
const RESPONSE: Parameter[] = [[Res(), Object]];
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
addWaiting('json', () => ({ is: 'json' }));
addWaiting('cached', () => 'cached', { decorators: [Header('Cache-Control', 'public, max-age=60')] });
addWaiting('res-json', (response) => void response.json({ by: 'Express' }), { parameters: RESPONSE });
addWaiting('res-end', (response) => void response.setHeader('Connection', 'keep-alive').end('by Node'), {
  parameters: RESPONSE,
});
addWaiting(
  'res-head',
  (response) => void response.writeHead(200, ['Content-Type', 'text/plain', 'Content-Length', '4']).end('head'),
  { parameters: RESPONSE },
);
addWaiting('redirect', () => undefined, { decorators: [Redirect('/v1/test-own/json')] });
addWaiting('stream', () => new StreamableFile(Readable.from([Buffer.from('a '), Buffer.from('stream')])));
addWaiting('events', () => of({ data: 'event' }), {}, Sse('events'));
OWN.add(Get('endless'), 'endless', (response: Response) => void response.write('first '), { parameters: RESPONSE });

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

describe('a response that a handler writes itself', () => {
  let app: TestApp;
  beforeAll(
    async () =>
      (app = await createTestApp({ features: [OwnAnswersModule], settings: { MAX_REQUESTS_IN_FLIGHT: '5' } })),
  );
  afterAll(() => app.close());

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
  const app = await createTestApp({ features: [OwnAnswersModule], settings: { SHUTDOWN_DELAY_MS: '1000' } });
  let go!: () => void;
  passed = new Promise((resolve) => (go = resolve));
  waiting = 0;
  const request = (path: string): string => `GET /v1/test-own/${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  // An event stream announces `keep-alive` itself, and is cut when the server stops listening.
  const kinds = KINDS.flatMap(([path]) => (path === 'events' ? [] : path));
  const begunBefore = kinds.map((path) => rawRequest(app.port, request(path)));
  await until(() => waiting === kinds.length);
  const closed = app.close();
  await until(async () => (await app.client.get('/health/ready')).status === 503);
  const begunAfter = kinds.map((path) => rawRequest(app.port, request(path)));
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

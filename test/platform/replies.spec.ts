import { Header, HttpCode, HttpException, type INestApplication, Post, Res } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Response } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorFilter, PlatformExpressAdapter } from '#edge';
import { Handlers, type Parameter } from '../ordinary-nest/handlers.js';
import { readConfig } from '../support/config.js';
import { rawRequest } from '../support/raw-request.js';

const JSON_VALUE = { name: 'Zoë 🐕' };
const PASSED: Parameter[] = [[Res({ passthrough: true }), Object]];
const ANSWERS = new Handlers('');
ANSWERS.get('json', () => JSON_VALUE);
ANSWERS.get('text', () => 'Zoë 🐕');
ANSWERS.get('nothing', () => undefined);
ANSWERS.get('no-content', () => undefined, {}, { decorators: [HttpCode(204)] });
ANSWERS.get(
  'length-of-another',
  (response: Response) => {
    if (response.hasHeader('Content-Length')) throw new Error('The response of three bytes fails.');
    return 'one';
  },
  {},
  { parameters: PASSED, decorators: [Header('Content-Length', '3')] },
);
ANSWERS.add(Post('unread'), 'unread', () => JSON_VALUE);
ANSWERS.add(Post('by-itself'), 'by-itself', (response: Response) => response.status(201).send('not read'), {
  parameters: [[Res(), Object]],
});
ANSWERS.add(Post('unread-for-a-while'), 'unread-for-a-while', () => sleep(20, JSON_VALUE));
ANSWERS.get(
  'range',
  (response: Response) => {
    response.setHeader('Accept-Ranges', 'bytes').setHeader('Content-Range', 'bytes */4').setHeader('ETag', '"1"');
    throw new HttpException('The file has four bytes.', 416);
  },
  {},
  { parameters: PASSED },
);

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Decoded as latin1, so that its length is the number of its bytes. */
  readonly body: string;
}

let app: INestApplication;
beforeAll(async () => {
  const config = readConfig({ PORT: '0', HOST: '127.0.0.1' });
  const module = await Test.createTestingModule({
    controllers: [ANSWERS.controller],
    providers: [ErrorFilter],
  }).compile();
  app = module.createNestApplication(new PlatformExpressAdapter(config), { bodyParser: false, logger: false });
  app.useGlobalFilters(app.get(ErrorFilter));
  await app.listen(0, '127.0.0.1');
});
afterAll(() => app.close());

/** Sends bytes, and returns everything that comes back until the server closes the connection. */
function exchange(bytes: string, options?: Parameters<typeof rawRequest>[2]): Promise<string> {
  return rawRequest(((app.getHttpServer() as Server).address() as AddressInfo).port, bytes, options);
}

async function ask(method: string, path: string, fields: string[] = [], version = '1.1'): Promise<Answer> {
  const lines = [`${method} ${path} HTTP/${version}`, 'Host: x', 'Connection: close', ...fields];
  return parse(await exchange(`${lines.join('\r\n')}\r\n\r\n`));
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
  test.each(['/json', '/text', '/nothing', '/nowhere'])(
    'is sent once, in bytes, to GET and HEAD of HTTP/1.1 and HTTP/1.0: %s',
    async (path) => {
      const get = await ask('GET', path);
      expect(get.headers['content-length']).toBe(String(get.body.length));
      expect(get.headers['transfer-encoding']).toBeUndefined();
      expect(get.body === '').toBe(path === '/nothing');
      for (const [method, version] of [
        ['HEAD', '1.1'],
        ['GET', '1.0'],
        ['HEAD', '1.0'],
      ] as const) {
        const { 'content-length': length, 'content-type': type } = get.headers;
        expect(await ask(method, path, [], version)).toMatchObject({
          ...{ status: get.status, body: method === 'HEAD' ? '' : get.body },
          headers: { 'content-length': length, ...(type === undefined ? {} : { 'content-type': type }) },
        });
      }
    },
  );

  test('of an error fits its body, also when the handler has set a different one before it failed', async () => {
    const { status, headers, body } = await ask('GET', '/length-of-another');
    expect([status, headers['content-length']]).toEqual([500, String(body.length)]);
  });

  test.each(['1.1', '1.0'])('is not sent with 204 and 304, HTTP/%s', async (version) => {
    const { etag = '' } = (await ask('GET', '/json')).headers;
    expect(etag).toMatch(/^W\/"/);
    const answers = [
      await ask('GET', '/no-content', [], version),
      await ask('HEAD', '/no-content', [], version),
      await ask('GET', '/json', [`If-None-Match: ${etag}`], version),
      await ask('HEAD', '/json', [`If-None-Match: ${etag}`], version),
    ];
    expect(answers.map(({ status }) => status)).toEqual([204, 204, 304, 304]);
    for (const { headers, body } of answers) {
      expect([headers['content-length'], headers['transfer-encoding'], body]).toEqual([undefined, undefined, '']);
    }
  });

  test.each(['/json', '/nothing'])('lets an HTTP/1.0 client keep its connection: %s', async (path) => {
    const request = `GET ${path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`;
    const last = `GET ${path} HTTP/1.0\r\n\r\n`;
    const received = await exchange(request + request + last);
    expectAnswers(received, [200, 'keep-alive'], [200, 'keep-alive'], [200, 'close']);
  });

  test.each([
    ['/unread', 201],
    ['/by-itself', 201],
    ['/nowhere', 404],
  ])('is sent when the response precedes the rest of the request: %s', async (path, status) => {
    const framings = [
      'Content-Length: 100\r\n\r\nhalf',
      'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      'Expect: 100-continue\r\nContent-Length: 9\r\n\r\n',
    ];
    const received = await Promise.all(
      framings.map((framing) => exchange(`POST ${path} HTTP/1.1\r\nHost: x\r\n${framing}`)),
    );
    for (const answer of received.map(parse)) {
      expect([answer.status, answer.headers['connection']]).toEqual([status, 'close']);
      expect(answer.headers['content-length']).toBe(String(answer.body.length));
      expect(answer.headers['transfer-encoding']).toBeUndefined();
    }
  });

  test('is sent, and the connection kept, when the unread body has arrived before the response', async () => {
    const request = 'POST /unread-for-a-while HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody';
    const last = 'GET /json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    expectAnswers(await exchange(request + last), [201, 'keep-alive'], [200, 'close']);
  });
});

describe('a request without content', () => {
  test('a HEAD whose body never comes is answered before a client could send it', async () => {
    const ended: string[] = [];
    const send = async (method: string): Promise<string> => {
      const path = method === 'HEAD' ? '/json' : '/unread';
      const answer = await exchange(`${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n`);
      ended.push(method);
      return answer;
    };
    const [, head] = await Promise.all([send('POST'), send('HEAD')]);
    expect(ended).toEqual(['HEAD', 'POST']);
    expect(head).toMatch(/^HTTP\/1\.1 200 [^]+\r\n\r\n$/);
  });

  test('a HEAD that the parser refuses gets the head alone', async () => {
    const refused = (method: string): Promise<string> =>
      exchange(`${method} / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(await refused('HEAD')).toMatch(/^HTTP\/1\.1 431 [^]+\r\nContent-Length: [1-9]\d+\r\n[^{]+\r\n\r\n$/);
    expect(await refused('GET')).toMatch(/\r\n\r\n\{"code":"headers_too_large"/);
  });

  test('a GET whose empty chunked body ends later keeps its connection', async () => {
    const received = await exchange('GET /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n', {
      then: { after: 'HTTP', send: '0\r\n\r\nGET /text HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' },
    });
    expectAnswers(received, [200, 'keep-alive'], [200, 'close']);
  });

  test('… and one whose chunked body does not end is cut', async () => {
    const answer = await exchange('GET /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    expect(parse(answer).status).toBe(200);
  });

  test('a 416 keeps the fields that explain it', async () => {
    const { status, headers } = await ask('GET', '/range');
    expect([status, headers]).toMatchObject([416, { 'accept-ranges': 'bytes', 'content-range': 'bytes */4' }]);
    expect(headers).not.toHaveProperty('etag');
  });
});

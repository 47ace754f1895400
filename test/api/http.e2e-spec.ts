import { Controller, Get, HttpCode, Module, NotFoundException, Post } from '@nestjs/common';
import type { Express, Request, Response } from 'express';
import type { Server } from 'node:http';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';

@Public()
@Controller('faults')
class FaultsController {
  @Get('bug')
  bug(): void {
    throw new TypeError('secret internals at pet.ts:42');
  }

  @Get('nest')
  nest(): void {
    throw new NotFoundException('No such fault.');
  }

  @Get('plain')
  plain(): string {
    return 'plain text';
  }

  @Post('nothing')
  @HttpCode(204)
  nothing(): void {}
}

@Module({ controllers: [FaultsController] })
class FaultsModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({
    modules: [FaultsModule],
    settings: { HEADERS_TIMEOUT_MS: '700', REQUEST_TIMEOUT_MS: '1200', KEEP_ALIVE_TIMEOUT_MS: '60000' },
  });
});
afterAll(() => app.close());

const raw = (bytes: string | Buffer, options?: Parameters<typeof rawRequest>[2]): Promise<string> =>
  rawRequest(app.port, bytes, options);

/** A raw answer must be one Error and nothing else. */
function expectRawError(answer: string, status: number, code: string): void {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(head).toMatch(/^content-type: application\/json$/im);
  expect(head).toMatch(/^cache-control: no-store$/im);
  expect(head).toMatch(/^x-content-type-options: nosniff$/im);
  expect(head).toMatch(/^x-request-id: [A-Za-z0-9._-]{1,128}$/im);
  expect(head).toMatch(new RegExp(`^content-length: ${Buffer.byteLength(body, 'latin1')}$`, 'im'));
  expect(JSON.parse(body)).toEqual({ code, status, message: expect.any(String) as string });
  expect(Object.keys(JSON.parse(body) as object)).toEqual(['code', 'message', 'status']);
}

describe('routes', () => {
  test.each([
    '/v1',
    '/v1/',
    '/v1/cats',
    '/v1/pets/',
    '/v1/pets/1/',
    '/v1/pets/1/toys',
    '/v1/Pets',
    '/V1/pets',
    '/pets',
    '/v2/pets',
    '//v1/pets',
    '/v1//pets',
    '/v1/pets%2F1',
    '/favicon.ico',
    '/v1/pets/%ff',
    '/v1/pets/%zz',
  ])('404 route_not_found, without a key: %s', async (path) => {
    const answer = await app.client.get(path, { apiKey: null });
    expect(answer.json).toEqual({ code: 'route_not_found', status: 404, message: expect.any(String) as string });
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    expect(answer.headers.etag).toBeUndefined();
  });

  test.each([
    ['/v1/pets', 'GET, HEAD, OPTIONS, POST', ['PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']],
    ['/v1/pets/1', 'GET, HEAD, OPTIONS', ['POST', 'PUT', 'PATCH', 'DELETE']],
    ['/v1/faults/nothing', 'OPTIONS, POST', ['GET', 'HEAD']],
  ])('405 method_not_allowed with Allow, without a key: %s', async (path, allow, methods) => {
    for (const method of methods) {
      const answer = await app.client.send(method, path, { apiKey: null });
      expect([method, answer.status, answer.headers.allow]).toEqual([method, 405, allow]);
      if (method !== 'HEAD') {
        expect(answer.json).toMatchObject({ code: 'method_not_allowed', status: 405 });
      }
    }
  });

  test.each([
    ['/v1/pets', 'GET, HEAD, OPTIONS, POST'],
    ['/v1/pets/1', 'GET, HEAD, OPTIONS'],
  ])('OPTIONS %s: 204 with Allow, without a key', async (path, allow) => {
    const answer = await app.client.send('OPTIONS', path, { apiKey: null });
    expect([answer.status, answer.headers.allow, answer.text]).toEqual([204, allow, '']);
  });

  test('HEAD is GET without its body', async () => {
    await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    const get = await app.client.get('/v1/pets?limit=1');
    const head = await app.client.send('HEAD', '/v1/pets?limit=1');
    expect([head.status, head.text]).toEqual([200, '']);
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control', 'vary', 'link']) {
      expect([name, head.headers[name]]).toEqual([name, get.headers[name]]);
    }
    expect((await app.client.send('HEAD', '/v1/pets', { apiKey: null })).status).toBe(401);
  });

  test('Accept is not negotiated', async () => {
    expect((await app.client.get('/v1/pets', { headers: { accept: 'text/html' } })).status).toBe(200);
  });

  test('a request target in absolute form is served (RFC 9112, section 3.2.2)', async () => {
    const answer = await raw(
      `GET http://pets.example/v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.apiKey}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('an asterisk or a CONNECT gets an Error too', async () => {
    expectRawError(await raw('OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), 404, 'route_not_found');
    expectRawError(await raw('CONNECT pets.example:443 HTTP/1.1\r\nHost: pets.example\r\n\r\n'), 400, 'bad_request');
  });
});

describe('errors', () => {
  test('500 internal_error says nothing of its cause, and the log has it with the request id', async () => {
    const answer = await app.client.get('/v1/faults/bug', { headers: { 'x-request-id': 'find-me' } });
    expect(answer.json).toEqual({
      code: 'internal_error',
      message: 'The service failed to answer; quote the X-Request-Id when you report it.',
      status: 500,
    });
    expect(
      app.log.lines.find((line) => line.level === 50 && JSON.stringify(line).includes('secret internals')),
    ).toBeDefined();
    expect(app.log.requests.find((line) => line['requestId'] === 'find-me')).toMatchObject({
      status: 500,
      code: 'internal_error',
    });
  });

  test("Nest's own exceptions have the Error body", async () => {
    expect((await app.client.get('/v1/faults/nest')).json).toEqual({
      code: 'not_found',
      message: 'No such fault.',
      status: 404,
    });
  });

  test('414 uri_too_long', async () => {
    expect((await app.client.get(`/v1/pets?${'x'.repeat(8192)}`)).json).toMatchObject({
      code: 'uri_too_long',
      status: 414,
    });
    expect((await app.client.get(`/v1/pets?${'x'.repeat(8000)}`)).json).toMatchObject({ code: 'invalid_parameter' });
  });
});

describe('X-Request-Id', () => {
  test.each(['a', 'A-z_0.9', 'x'.repeat(128)])("the client's own: %s", async (id) => {
    expect((await app.client.get('/v1/pets', { headers: { 'x-request-id': id } })).headers['x-request-id']).toBe(id);
  });

  test.each(['x'.repeat(129), 'a b', 'a"b', 'ä', '', undefined])('a new one instead of %j', async (id) => {
    const sent = id === undefined ? undefined : Buffer.from(id).toString('latin1');
    const answer = await app.client.get('/v1/nowhere', { headers: { 'x-request-id': sent } });
    expect(answer.headers['x-request-id']).toMatch(/^[A-Za-z0-9_-]{16}$/);
  });

  test('new ones differ', async () => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => app.client.get('/health/live', { apiKey: null })),
    );
    expect(new Set(answers.map(({ headers }) => headers['x-request-id'])).size).toBe(300);
  });
});

test('no answer names the software that made it', async () => {
  for (const path of ['/v1/pets', '/v1/nowhere', '/health/live', '/openapi.json']) {
    const { headers } = await app.client.get(path);
    expect(headers['x-powered-by']).toBeUndefined();
    expect(headers.server).toBeUndefined();
    expect(headers['x-content-type-options']).toBe('nosniff');
  }
});

describe('what no HTTP client sends', () => {
  test.each([
    ['garbage', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['a broken request line', 'GET /v1/pets\r\n\r\n'],
    ['another protocol', 'GET /v1/pets SPDY/3\r\nHost: x\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 'FETCH /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without colon', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization\r\n\r\n'],
    ['a folded header', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n'],
    [
      'Content-Length and Transfer-Encoding',
      'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['two Content-Length', 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
    ['a negative Content-Length', 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    [
      'Transfer-Encoding that does not end in chunked',
      'POST /v1/pets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
    ],
    ['no Host', 'GET /v1/pets HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['two Host', 'GET /v1/pets HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n'],
    [
      'a broken chunk',
      `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nnot-hex\r\n`,
    ],
  ])('400 bad_request: %s', async (_, bytes) => {
    expectRawError(await raw(Buffer.from(bytes.replace('KEY', app.apiKey), 'latin1')), 400, 'bad_request');
  });

  test('431 headers_too_large', async () => {
    expectRawError(
      await raw(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`),
      431,
      'headers_too_large',
    );
  });

  test('417 expectation_failed', async () => {
    expectRawError(
      await raw('POST /v1/pets HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n'),
      417,
      'expectation_failed',
    );
  });

  test('408 request_timeout: half a header section and then silence', async () => {
    expectRawError(await raw('GET /v1/pets HTTP/1.1\r\nHost: x\r\n'), 408, 'request_timeout');
  });

  test('408 request_timeout: half a body and then silence', async () => {
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.apiKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n`;
    expectRawError(await raw(`${head}{"name":`), 408, 'request_timeout');
  });

  test('a client that hangs up in the middle of its body leaves no trace but its log line', async () => {
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nX-Request-Id: hung-up\r\nAuthorization: Bearer ${app.apiKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n`;
    await raw(head, { until: '100 Continue' });
    await app.client.get('/v1/pets');
    const deadline = performance.now() + 5_000;
    while (!app.log.requests.some((line) => line['requestId'] === 'hung-up') && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(app.log.requests.find((line) => line['requestId'] === 'hung-up')).toMatchObject({ aborted: true });
    expect(
      app.log.lines.filter((line) => line.level >= 50 && JSON.stringify(line).includes('closed the connection')),
    ).toEqual([]);
  });

  test('pipelined requests are answered in their order, a broken one last', async () => {
    const good = `GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.apiKey}\r\n\r\n`;
    const answer = await raw(`${good}${good}BROKEN\r\n\r\n`);
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
    const behind = await raw(`${good}${good}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect(behind.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  test('an Upgrade is served as the request it is', async () => {
    const answer = await raw(
      `GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`,
      { until: '"ok"' },
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('Express', () => {
  test('requests and responses have the members that Express promises', async () => {
    const seen: Record<string, unknown> = {};
    const express = app.nest.getHttpAdapter().getInstance() as Express;
    const server = app.nest.getHttpServer() as Server;
    server.once('request', (request: Request, response: Response) => {
      seen['promises'] = [
        request.get('host') !== undefined,
        request.path,
        request.query['limit'],
        request.ip,
        request.protocol,
      ];
      seen['app'] = request.app === express && response.app === express;
      response.locals['is'] = 'there';
    });
    await app.client.get('/v1/pets?limit=3');
    expect(seen).toEqual({
      promises: [true, '/v1/pets', '3', '127.0.0.1', 'http'],
      app: true,
    });
  });
});

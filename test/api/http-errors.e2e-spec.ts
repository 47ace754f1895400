import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({
    settings: { REQUEST_TIMEOUT_MS: '1200', KEEP_ALIVE_TIMEOUT_MS: '60000' },
  });
});
afterAll(() => app.close());

const raw = (bytes: string | Buffer, options?: Parameters<typeof rawRequest>[2]): Promise<string> =>
  rawRequest(app.port, bytes, options);

/** Expects that a raw answer is one Error and nothing else. `api/security` holds its other header fields. */
function expectRawError(answer: string, status: number, code: string): void {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(head).toMatch(new RegExp(`^content-length: ${Buffer.byteLength(body, 'latin1')}$`, 'im'));
  expect(JSON.parse(body)).toEqual({ code, status, message: expect.any(String) as string });
}

describe('requests that no HTTP client sends', () => {
  test('OPTIONS * gets 204 with the methods of all routes, and GET * an Error', async () => {
    const answer = await raw('OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 204 [^]*\r\nAllow: GET, HEAD, OPTIONS, POST\r\n/);
    expectRawError(await raw('GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), 400, 'bad_request');
  });

  test.each([
    ['garbage', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['a broken request line', 'GET /v1/pets\r\n\r\n'],
    ['another protocol', 'GET /v1/pets SPDY/3\r\nHost: x\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 'FETCH /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without colon', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization\r\n\r\n'],
    ['a folded header', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n'],
    ['a negative Content-Length', 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    ['no Host', 'GET /v1/pets HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['two Host', 'GET /v1/pets HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n'],
    ['two Host in HTTP/1.0', 'GET /health/live HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n'],
    ['HTTP/0.9', 'GET /health/live HTTP/0.9\r\nHost: x\r\n\r\n'],
    ['HTTP/1.2', 'GET /health/live HTTP/1.2\r\nHost: x\r\n\r\n'],
    ['RTSP/2.0', 'GET /health/live RTSP/2.0\r\nHost: x\r\n\r\n'],
    [
      'two Content-Type',
      'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n',
    ],
    [
      'a broken chunk, while the key is looked up',
      `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nnot-hex\r\n`,
    ],
  ])('400 bad_request: %s', async (_, bytes) => {
    // A new key, which the service has not cached.
    const key = await app.createApiKey('pets:write');
    expectRawError(await raw(Buffer.from(bytes.replace('KEY', key), 'latin1')), 400, 'bad_request');
  });

  test.each([
    ...['x y', 'a/b', 'a#b', 'u@h', 'x:abc', 'x%zz', '"x"', '[::1', '::1', '[1.2.3.4]', '[::1]:a', 'ä', 'a, b'],
  ])('400 bad_request: the Host %s', async (host) => {
    expectRawError(
      await raw(Buffer.from(`GET /health/live HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 'latin1')),
      400,
      'bad_request',
    );
  });

  test.each([
    ...['', 'x', 'x:', ':80', 'Pets.Example', 'a-b_c~d', 'x%20y', '127.0.0.1:3000', '[2001:DB8::1]', '[::1]:3000'],
  ])('200: the Host %j', async (host) => {
    const answer = await raw(`GET /health/live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  test.each([
    ...['/health/live#', '/health/live?a#b', 'ftp://x/health/live', 'urn:x', 'health/live', '?a', '*'],
    ...['http:///health/live', 'http://u:p@x/health/live', 'http://x:y/health/live', 'http://[::1/health/live'],
  ])('400 bad_request: GET of the target %s', async (target) => {
    expectRawError(await raw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`), 400, 'bad_request');
  });

  test.each(['http://x/health/live', 'HTTP://y:80/health/live', 'https://[::1]/health/live', '/health/live?%23=://'])(
    '200: GET of the target %s',
    async (target) => {
      const answer = await raw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    },
  );
});

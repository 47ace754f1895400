import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { MAX_PIPELINED_REQUESTS } from '../../libs/edge/src/requests/server-limits.js';
import { createTestApp, type TestApp } from '../support/app.js';
import {
  openClient,
  type RawClient,
  rawRequest,
  sendSegments as send,
  statusesOf as statuses,
} from '../support/raw-request.js';
import { SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

let app: TestApp;
let authorized: string;
let post: string;
beforeAll(async () => {
  app = await createTestApp({
    features: [SlowModule],
    settings: { REQUEST_TIMEOUT_MS: '1500' },
  });
  authorized = `Host: x\r\nAuthorization: Bearer ${app.apiKey}\r\n`;
  post = `POST /v1/pets HTTP/1.1\r\n${authorized}Content-Type: application/json\r\n`;
});
afterAll(() => app.close());

const PET = '{"name":"Rex","categoryId":7}';
const LENGTH = `Content-Length: ${PET.length}\r\n`;
const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n';
const SLOW = 'GET /v1/test-slow HTTP/1.1\r\nHost: x\r\n\r\n';
const BROKEN_CHUNK = 'Transfer-Encoding: chunked\r\n\r\nnot-hex\r\n';

const requestIds = (text: string): string[] => [...text.matchAll(/X-Request-Id: (\S+)/gi)].map(([, id]) => String(id));

const sendSegments = (...segments: string[]): Promise<string> => send(new URL(app.origin), segments, 20_000);

async function countPets(): Promise<number> {
  return Number((await app.sql('SELECT count(*) FROM pet'))[0]?.[0]);
}

/** Calls the waiting handlers of TestSlowController as they arrive, `count` of them. */
async function answerSlow(count: number): Promise<void> {
  const { waiting } = app.nest.get(TestSlowController);
  for (; count > 0; count--) (await until(() => waiting.shift()))();
}

describe('Upgrade', () => {
  const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';

  test('the requests before it get their responses first, also those that take time', async () => {
    const answer = sendSegments(`${SLOW}${LIVE}${upgrade}\r\n${LIVE}\r\n`, `${LIVE}\r\n`);
    await answerSlow(1);
    expect(statuses(await answer)).toEqual([200, 200]);
    expect((await answer).indexOf('["slow"]')).toBeLessThan((await answer).indexOf('"ok"'));
    expect((await answer).match(/\r\nConnection: [^\r]*/g)).toEqual([
      '\r\nConnection: keep-alive',
      '\r\nConnection: close',
    ]);
  });

  describe('with a module that serves WebSockets', () => {
    const taken: { url: string | undefined; head: string }[] = [];
    const handshake = (): string =>
      `GET /v1/socket HTTP/1.1\r\n${authorized}Connection: Upgrade\r\nUpgrade: WebSocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
    /** Echoes all bytes after a handshake. */
    const accept = ({ url }: { url?: string }, socket: Duplex, head: Buffer): void => {
      taken.push({ url, head: head.toString('latin1') });
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.write(head);
      socket.on('error', () => undefined).pipe(socket);
    };
    beforeAll(() => void (app.nest.getHttpServer() as Server).on('upgrade', accept));
    afterAll(() => void (app.nest.getHttpServer() as Server).off('upgrade', accept));
    beforeEach(() => void taken.splice(0));

    test('it gets every handshake, with all bytes after it', async () => {
      const answer = await rawRequest(app.port, `${handshake()}frame one, `, {
        then: { after: 'one', send: 'frame two' },
        until: 'two',
      });
      expect(answer).toMatch(/^HTTP\/1\.1 101 /);
      expect(answer).toMatch(/frame one, frame two$/);
      expect(taken).toEqual([{ url: '/v1/socket', head: 'frame one, ' }]);
    });

    test('it gets no other Upgrade, and nothing is lost or smuggled', async () => {
      for (const segments of [
        [`${LIVE}${upgrade}\r\n${SLOW}`, SLOW],
        [`${LIVE}Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n${SLOW}`, SLOW],
      ]) {
        expect(statuses(await sendSegments(...segments))).toEqual([200]);
      }
      const before = await countPets();
      const fields = upgrade.replace('h2c', 'websocket');
      const answer = await sendSegments(`${post}${LENGTH}${fields}\r\n${PET.slice(0, 5)}`, `${PET.slice(5)}${SLOW}`);
      expect(statuses(answer)).toEqual([201]);
      expect(await countPets()).toBe(before + 1);
      expect(taken).toEqual([]);
    });

    test('a handshake after a request without a response is served as an ordinary request', async () => {
      const answer = sendSegments(`${SLOW}${handshake()}`);
      await answerSlow(1);
      expect(statuses(await answer)).toEqual([200, 404]);
      expect(taken).toEqual([]);
    });
  });
});

describe('requests that are sent ahead', () => {
  const open = (bytes: string): Promise<RawClient> => openClient(app.port, bytes);
  const waiting = (): (() => void)[] => app.nest.get(TestSlowController).waiting;

  test('with bodies are all carried out, in their order', async () => {
    const count = 50;
    const bodies = Array.from({ length: count }, (_, index) =>
      JSON.stringify({ name: `${index} x`, categoryId: 7, ignored: 'x'.repeat(400 + index) }),
    );
    const requests = bodies.map((body) => `${post}Content-Length: ${body.length}\r\n\r\n${body}`);
    const before = await countPets();
    const { socket, text } = await open(requests.join(''));
    await until(() => statuses(text()).length === count);
    const names = [...text().matchAll(/"name":"(\d+) x"/g)].map(([, name]) => Number(name));
    expect(names).toEqual(bodies.map((_, index) => index));
    expect(await countPets()).toBe(before + count);
    socket.destroy();
  });

  test('do not delay the request of another client', async () => {
    const [ahead, other] = await Promise.all([
      open(`${LIVE}X-Request-Id: ahead\r\n\r\n`.repeat(100)),
      open(`${LIVE}\r\n`),
    ]);
    await until(() => statuses(other.text()).length === 1 && statuses(ahead.text()).length > 0);
    const log = app.log.requests.map(({ requestId }) => String(requestId));
    const [id] = requestIds(other.text());
    expect(log.lastIndexOf(String(id))).toBeLessThan(log.indexOf('ahead') + 50);
    ahead.socket.destroy();
    other.socket.destroy();
  });

  test('are bounded over all connections: a connection beyond the bound is cut, the others are served', async () => {
    const each = 400;
    const fits = MAX_PIPELINED_REQUESTS / each;
    const opening = Array.from({ length: fits + 1 }, () => open(SLOW + `${LIVE}\r\n`.repeat(each)));
    const clients = await Promise.all(opening);
    const isCut = ({ socket }: RawClient): boolean => socket.destroyed;
    await until(() => clients.filter(isCut).length === 1 && waiting().length >= fits);
    expect((await app.client.get('/v1/pets?limit=1')).status).toBe(200);
    await until(() => /Cut a connection, because too many requests were sent ahead\./.test(app.log.text));
    for (const answer of waiting().splice(0)) answer();
    for (const { socket, text } of clients.filter((other) => !isCut(other))) {
      await until(() => statuses(text()).length === each + 1);
      socket.destroy();
    }

    // Their places are free again.
    const { socket, text } = await open(SLOW + `${LIVE}\r\n`);
    await answerSlow(1);
    await until(() => statuses(text()).length === 2);
    socket.destroy();
  }, 60_000);
});

test('the body of a GET is no request', async () => {
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n';
  const list = `GET /v1/pets HTTP/1.1\r\n${authorized}Content-Length: ${hidden.length}\r\n\r\n${hidden}`;
  // The connection may close after a response that precedes the rest of its request.
  expect([[200], [200, 302]]).toContainEqual(statuses(await rawRequest(app.port, `${list}GET / HTTP/1.0\r\n\r\n`)));
});

describe('an error of the parser never overtakes a response', () => {
  test('after several slow requests, in one packet and in several: a broken chunk', async () => {
    const broken = `${post}${BROKEN_CHUNK}`;
    for (const segments of [[`${SLOW}${LIVE}\r\n${SLOW}${broken}`], [SLOW, `${LIVE}\r\n`, SLOW, broken, broken]]) {
      const answer = sendSegments(...segments);
      await answerSlow(2);
      expect(statuses(await answer)).toEqual([200, 200, 200, 400]);
    }
  });

  test('408 after a slow request', async () => {
    const answer = sendSegments(`${SLOW}${post}X-Request-Id: late\r\n${LENGTH}\r\n{`);
    await once(app.nest.getHttpServer() as Server, 'clientError');
    await answerSlow(1);
    expect(statuses(await answer)).toEqual([200, 408]);
    expect(requestIds(await answer)[1]).toBe('late');
    expect(await answer).not.toContain('STILL OPEN');
  });
});

describe('an error in a body is the response to its request', () => {
  test.each([
    ['408', 'request_timeout', () => `${LENGTH}\r\n{`],
    ['400', 'bad_request', () => BROKEN_CHUNK],
    ['400', 'bad_request', () => `Transfer-Encoding: chunked\r\n\r\n5\r\n{"nam\r\nnot-hex\r\n`],
    ['413', 'body_too_large', () => `Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}\r\n`],
  ])('%s %s, with the request id of its client, in one line of the log', async (status, code, body) => {
    const id = `body-${status}-${Math.random().toString(36).slice(2)}`;
    const answer = await sendSegments(`${post}X-Request-Id: ${id}\r\n${body()}`);
    expect(statuses(answer)).toEqual([Number(status)]);
    expect(requestIds(answer)).toEqual([id]);
    expect(answer).toContain(`"code":"${code}"`);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    const lines = (): object[] => app.log.requests.filter(({ requestId }) => requestId === id);
    await until(() => lines().length > 0);
    expect(lines()).toEqual([expect.objectContaining({ status: Number(status), code, operation: 'createPet' })]);
  });

  test('a body in several chunks that arrive together is read as a whole', async () => {
    const chunks = PET.replace(/.{1,8}/g, (chunk) => `${chunk.length}\r\n${chunk}\r\n`);
    const fields = 'Connection: close\r\nTransfer-Encoding: chunked\r\n';
    const answer = await sendSegments(`${post}${fields}\r\n${chunks}0\r\n\r\n`);
    expect([statuses(answer), answer]).toEqual([[201], expect.stringContaining('"name":"Rex"')]);
  });

  test('an invalid body that is not read breaks no response', async () => {
    const answer = sendSegments(`${SLOW.slice(0, -2)}Transfer-Encoding: chunked\r\n\r\n`, 'not-hex\r\n', 'more\r\n');
    await answerSlow(1);
    expect(statuses(await answer)).toEqual([200]);
    expect(await answer).not.toContain('STILL OPEN');
    expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
  });
});

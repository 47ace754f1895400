import { Injectable, Module } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import {
  ConnectedSocket,
  MessageBody,
  type OnGatewayConnection,
  SubscribeMessage,
  WebSocketGateway,
  WebSocketServer,
  WsException,
} from '@nestjs/websockets';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { connect, type Socket as NetSocket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { io, type ManagerOptions, type Socket, type SocketOptions } from 'socket.io-client';
import { WebSocket } from 'ws';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { RequireScopes } from '../../src/platform/auth/require-scopes.decorator.js';
import { Int64Property, TextProperty } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* Nest's gateways on both adapters are protected like controllers. */

const LARGEST = 9223372036854775807n;

class Word {
  @TextProperty({ description: 'A word.', minLength: 1, maxLength: 5 })
  text: string;

  @Int64Property({ description: 'A number.', required: false })
  number?: bigint;
}

/** The handlers that both kinds of gateways have. */
class Talk {
  @SubscribeMessage('echo')
  echo(@MessageBody() word: Word): unknown {
    return { event: 'echoed', data: { text: word.text, isWord: word instanceof Word, number: word.number } };
  }

  @SubscribeMessage('text')
  text(@MessageBody() text: string): unknown {
    return { event: 'echoed', data: text };
  }

  @SubscribeMessage('write')
  @RequireScopes('talk:write')
  write(): unknown {
    return { event: 'written', data: true };
  }

  @SubscribeMessage('fail')
  fail(@MessageBody('how') how: string): never {
    throw how === 'known' ? new WsException('No such room.') : new Error('secret of the inside');
  }

  @SubscribeMessage('large')
  large(): unknown {
    return { event: 'large', data: { id: LARGEST } };
  }

  @SubscribeMessage('open')
  @Public()
  open(): unknown {
    return { event: 'opened', data: true };
  }
}

@Injectable()
class Connected {
  readonly clients: string[] = [];
}

@WebSocketGateway({ path: '/closed' })
class ClosedWs extends Talk implements OnGatewayConnection {
  constructor(private readonly connected: Connected) {
    super();
  }

  handleConnection(
    _client: WebSocket,
    request: IncomingMessage & { context: { client: string; requestId: string } },
  ): void {
    this.connected.clients.push(`${request.context.client} ${request.context.requestId}`);
  }
}

@WebSocketGateway({ path: '/scoped' })
@RequireScopes('talk:write')
class ScopedWs extends Talk {}

@WebSocketGateway({ path: '/public' })
@Public()
class PublicWs extends Talk {}

@Module({ providers: [Connected, ClosedWs, ScopedWs, PublicWs] })
class WsModule {}

@WebSocketGateway({ path: '/closed.io' })
class ClosedIo extends Talk {}

@WebSocketGateway({ path: '/mixed.io', namespace: 'closed' })
class ClosedNamespace extends Talk {}

@WebSocketGateway({ path: '/mixed.io', namespace: 'public' })
@Public()
class PublicNamespace extends Talk {
  @WebSocketServer()
  readonly server: unknown;

  @SubscribeMessage('who')
  who(@ConnectedSocket() { id }: { id: string }): unknown {
    return { event: 'who', data: id };
  }
}

@Module({ providers: [ClosedIo, ClosedNamespace, PublicNamespace] })
class IoModule {}

/** The answer to a refused handshake. */
interface Refusal {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

async function refusalOf(socket: WebSocket): Promise<Refusal> {
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(text) };
}

const bearer = (key: string): { headers: Record<string, string> } => ({ headers: { authorization: `Bearer ${key}` } });

describe('platform-ws', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({
      features: [WsModule],
      setUp: (nest) => void nest.useWebSocketAdapter(new WsAdapter(nest)),
    });
  });
  afterAll(() => app.close());

  const sockets: WebSocket[] = [];
  afterEach(() => sockets.splice(0).forEach((socket) => socket.terminate()));

  function socketOf(path: string, options: { headers?: Record<string, string> } = bearer(app.apiKey)): WebSocket {
    const socket = new WebSocket(`ws://127.0.0.1:${app.port}${path}`, options);
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  }

  async function open(path: string, options?: { headers?: Record<string, string> }): Promise<WebSocket> {
    const socket = socketOf(path, options);
    await once(socket, 'open');
    return socket;
  }

  /** Sends a message, and returns the text of the answer. */
  async function ask(socket: WebSocket, event: string, data: string): Promise<string> {
    const answer = once(socket, 'message');
    socket.send(`{"event":"${event}","data":${data}}`);
    return String(((await answer) as [Buffer])[0]);
  }

  test.each([
    ['no key', {}, 'missing_api_key'],
    ['an unknown key', bearer('nonsense-nonsense-nonsense'), 'invalid_api_key'],
  ])('a handshake with %s is answered 401 with the Error body, and does not connect', async (_, options, code) => {
    for (const path of ['/closed', '/no-gateway']) {
      const { status, headers, body } = await refusalOf(socketOf(path, options));
      expect([status, body]).toEqual([401, { code, message: expect.any(String) as string, status: 401 }]);
      expect(headers['www-authenticate']).toMatch(/^Bearer realm="petstore"/);
      expect(headers['x-request-id']).toMatch(/^[\w-]{16}$/);
      expect(headers.connection).toBe('close');
    }
    expect(app.nest.get(Connected).clients).toEqual([]);
  });

  test('a valid key connects; handlers and log have the client and request id of the handshake', async () => {
    const headers = { ...bearer(app.apiKey).headers, 'x-request-id': 'handshake-1' };
    await open('/closed', { headers });
    expect(app.nest.get(Connected).clients).toEqual(['test-client handshake-1']);
    expect(app.log.lines.find(({ requestId }) => requestId === 'handshake-1')).toMatchObject({
      status: 101,
      operation: 'connect',
      client: 'test-client',
    });
  });

  test('messages are checked by the class that the handler declares', async () => {
    const socket = await open('/closed');
    expect(await ask(socket, 'echo', '{"text":"word"}')).toBe(
      '{"event":"echoed","data":{"text":"word","isWord":true}}',
    );
    expect(JSON.parse(await ask(socket, 'echo', '{"text":"too long","number":"1"}'))).toEqual({
      event: 'exception',
      data: {
        code: 'validation_failed',
        message: expect.stringMatching(/^text must be .*; number must be an integer/) as string,
        status: 400,
        cause: { pattern: 'echo', data: { text: 'too long', number: '1' } },
      },
    });
    expect(await ask(socket, 'text', '"as sent"')).toBe('{"event":"echoed","data":"as sent"}');
  });

  test('integers keep all digits, in both directions', async () => {
    const socket = await open('/closed');
    expect(await ask(socket, 'echo', `{"text":"word","number":${LARGEST}}`)).toContain(`"number":${LARGEST}`);
    expect(await ask(socket, 'large', 'null')).toBe(`{"event":"large","data":{"id":${LARGEST}}}`);
  });

  test('a message that is not JSON, or has no handler, is ignored', async () => {
    const socket = await open('/closed');
    socket.send('{"event":');
    socket.send('{"event":"nobody","data":1}');
    expect(await ask(socket, 'text', '1')).toBe('{"event":"echoed","data":1}');
  });

  test('an exception is answered with the Error body, and that of a bug reveals nothing internal', async () => {
    const socket = await open('/closed');
    expect(JSON.parse(await ask(socket, 'fail', '{"how":"known"}'))).toMatchObject({
      event: 'exception',
      data: { code: 'bad_request', message: 'No such room.', status: 400 },
    });
    const bug = await ask(socket, 'fail', '{}');
    expect(JSON.parse(bug)).toMatchObject({ data: { code: 'internal_error', status: 500 } });
    expect(bug).not.toContain('secret of the inside');
  });

  test('scopes are checked with each message, and those of the gateway with the handshake', async () => {
    expect(JSON.parse(await ask(await open('/closed'), 'write', 'null'))).toMatchObject({
      data: { code: 'insufficient_scope', status: 403 },
    });
    expect((await refusalOf(socketOf('/scoped'))).status).toBe(403);
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'writer', scopes: ['talk:write'] });
    for (const path of ['/closed', '/scoped']) {
      expect(await ask(await open(path, bearer(secret)), 'write', 'null')).toBe('{"event":"written","data":true}');
    }
  });

  test('@Public opens only its own gateway', async () => {
    const socket = await open('/public', {});
    expect(await ask(socket, 'text', '1')).toBe('{"event":"echoed","data":1}');
    expect(await ask(socket, 'open', '1')).toBe('{"event":"opened","data":true}');
    for (const path of ['/public/../closed', '/closed?x=/public', '//closed', '/public%2f../closed']) {
      const status = await refusalOf(socketOf(path, {})).then((refusal) => refusal.status);
      expect([path, status]).toEqual([path, 401]);
    }
  });

  test('each message counts as a call of its handler', async () => {
    const keys = app.nest.get(ApiKeysService);
    const { secret } = await keys.create({ client: 'limited' });
    await keys.limit('limited', 2);
    const socket = await open('/closed', bearer(secret));
    // The handshake counted as the first call.
    expect(await ask(socket, 'text', '1')).toContain('echoed');
    expect(JSON.parse(await ask(socket, 'text', '1'))).toMatchObject({ data: { code: 'rate_limited', status: 429 } });
  });

  test('a client is disconnected when its key is revoked', async () => {
    const keys = app.nest.get(ApiKeysService);
    const { key, secret } = await keys.create({ client: 'leaving' });
    const [staying, leaving] = [await open('/closed'), await open('/closed', bearer(secret))];
    const closed = once(leaving, 'close');
    await keys.revoke(String(key.id));
    expect((await closed)[0]).toBe(1008);
    expect(staying.readyState).toBe(WebSocket.OPEN);
  });

  test('a message longer than MAX_BODY_BYTES closes the connection', async () => {
    const socket = await open('/closed');
    const closed = once(socket, 'close');
    socket.send(`{"event":"text","data":"${'x'.repeat(app.config.maxBodyBytes)}"}`);
    expect((await closed)[0]).toBe(1009);
  });

  test('a client that disconnects during its handshake does not end the process', async () => {
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'hasty' });
    const fields = `Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n`;
    const socket: NetSocket = connect(app.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`GET /closed HTTP/1.1\r\n${fields}Authorization: Bearer ${secret}\r\n\r\n`);
    await sleep(1);
    socket.resetAndDestroy();
    await sleep(50);
    expect((await app.client.get('/health/live')).status).toBe(200);
  });

  test('HTTP requests are served as well', async () => {
    expect((await app.client.get('/v1/pets')).status).toBe(200);
    expect((await app.client.get('/v1/pets', { apiKey: null })).status).toBe(401);
    const { port } = (app.nest.getHttpServer() as Server).address() as { port: number };
    expect(port).toBe(app.port);
  });
});

describe('platform-socket.io', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ features: [IoModule] });
  });
  afterAll(() => app.close());

  const sockets: Socket[] = [];
  afterEach(() => sockets.splice(0).forEach((socket) => socket.disconnect()));

  function socketOf(
    path: string,
    namespace: string,
    key: string | undefined,
    transports: string[],
    options: Partial<ManagerOptions & SocketOptions> = {},
  ): Socket {
    const extraHeaders: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const socket = io(`${app.origin}${namespace}`, {
      path,
      transports,
      extraHeaders,
      forceNew: true,
      reconnection: false,
      ...options,
    });
    sockets.push(socket);
    return socket;
  }

  async function event(socket: Socket, name: string): Promise<unknown> {
    return new Promise((resolve) => socket.once(name, resolve));
  }

  async function open(...parameters: Parameters<typeof socketOf>): Promise<Socket> {
    const socket = socketOf(...parameters);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('connect_error', reject);
    });
    return socket;
  }

  async function ask(socket: Socket, name: string, data: unknown, answer: string): Promise<unknown> {
    const answered = event(socket, answer);
    socket.emit(name, data);
    return answered;
  }

  describe.each([[['polling']], [['websocket']], [['polling', 'websocket']]])('over %j', (transports) => {
    test('a client without a valid key does not connect', async () => {
      for (const key of [undefined, 'nonsense-nonsense-nonsense']) {
        const socket = socketOf('/closed.io', '/', key, transports);
        const error = (await event(socket, 'connect_error')) as { description?: unknown };
        expect(socket.connected).toBe(false);
        const { description } = error;
        expect(transports[0] === 'polling' ? description : (description as { message: string }).message).toEqual(
          transports[0] === 'polling' ? 401 : 'Unexpected server response: 401',
        );
      }
    });

    test('guard, pipe and filter apply to messages', async () => {
      const socket = await open('/closed.io', '/', app.apiKey, transports);
      expect(await ask(socket, 'echo', { text: 'word' }, 'echoed')).toEqual({ text: 'word', isWord: true });
      expect(await ask(socket, 'echo', { text: '' }, 'exception')).toMatchObject({
        code: 'validation_failed',
        status: 400,
        cause: { pattern: 'echo', data: { text: '' } },
      });
      expect(await ask(socket, 'write', {}, 'exception')).toMatchObject({ code: 'insufficient_scope', status: 403 });
      expect(await ask(socket, 'fail', { how: 'known' }, 'exception')).toMatchObject({ message: 'No such room.' });
      expect(await ask(socket, 'fail', {}, 'exception')).toMatchObject({ code: 'internal_error', status: 500 });
    });

    test('a public namespace needs no key, the other namespaces of its path do', async () => {
      const open_ = await open('/mixed.io', '/public', undefined, transports);
      expect(await ask(open_, 'text', 'hello', 'echoed')).toBe('hello');
      for (const namespace of ['/closed', '/']) {
        const refused = await event(socketOf('/mixed.io', namespace, undefined, transports), 'connect_error');
        expect((refused as { data?: unknown }).data).toMatchObject({ code: 'missing_api_key', status: 401 });
      }
      const closed = await open('/mixed.io', '/closed', app.apiKey, transports);
      expect(await ask(closed, 'text', 'hello', 'echoed')).toBe('hello');
    });
  });

  test('an answer with an integer beyond 2^53 is an error, and the connection stays', async () => {
    const socket = await open('/closed.io', '/', app.apiKey, ['websocket']);
    socket.emit('large');
    expect(await ask(socket, 'echo', { text: 'word', number: 7 }, 'echoed')).toEqual({
      text: 'word',
      isWord: true,
      number: 7,
    });
  });

  test('every request of long polling needs the key, not only the first one', async () => {
    const { text } = await app.client.get('/closed.io/?EIO=4&transport=polling');
    const { sid } = JSON.parse(text.slice(1)) as { sid: string };
    const { status, json } = await app.client.get(`/closed.io/?EIO=4&transport=polling&sid=${sid}`, { apiKey: null });
    expect([status, (json as { code: string }).code]).toEqual([401, 'missing_api_key']);
  });

  test('a client is disconnected when its key is revoked', async () => {
    const keys = app.nest.get(ApiKeysService);
    const { key, secret } = await keys.create({ client: 'leaving' });
    const socket = await open('/closed.io', '/', secret, ['websocket']);
    const gone = event(socket, 'disconnect');
    await keys.revoke(String(key.id));
    expect(await gone).toBe('io server disconnect');
  });

  test('HTTP requests are served as well, in the order of their connection', async () => {
    expect((await app.client.get('/v1/pets')).status).toBe(200);
    expect((await app.client.get('/closed.io', { apiKey: null })).status).toBe(401);
    expect((await app.client.get('/no-route')).status).toBe(404);
  });
});

test('503 for more clients of long polling than MAX_CONNECTIONS, although they hold no connection', async () => {
  const app = await createTestApp({ features: [IoModule], settings: { MAX_CONNECTIONS: '4' } });
  try {
    const statuses: number[] = [];
    let sid = '';
    for (let count = 0; count < 5; count++) {
      const { status, text } = await app.client.get('/closed.io/?EIO=4&transport=polling');
      statuses.push(status);
      if (status === 200) ({ sid } = JSON.parse(text.slice(1)) as { sid: string });
    }
    expect(statuses).toEqual([200, 200, 200, 200, 503]);
    // Connected clients are still served.
    const path = `/closed.io/?EIO=4&transport=polling&sid=${sid}`;
    expect(await app.client.send('POST', path, { body: '1', headers: { 'content-type': 'text/plain' } })).toMatchObject(
      { status: 200, text: 'ok' },
    );
  } finally {
    await app.close();
  }
});

describe('the end of the service', () => {
  const settings = { SHUTDOWN_DELAY_MS: '500', SHUTDOWN_TIMEOUT_MS: '20000' };

  test.each([
    ['ws', [WsModule], '/closed', 1001],
    ['socket.io', [IoModule], '/closed.io/?EIO=4&transport=websocket', 1005],
  ])(
    'clients of %s are disconnected, and requests are served until the drain is over',
    async (kind, modules, path, code) => {
      const app = await createTestApp({
        features: modules,
        settings,
        setUp: (nest) => void (kind === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest))),
      });
      const socket = new WebSocket(`ws://127.0.0.1:${app.port}${path}`, bearer(app.apiKey));
      await once(socket, 'open');
      const startedAt = performance.now();
      const closed = once(socket, 'close');
      const over = app.close();
      expect((await closed)[0]).toBe(code);
      expect((await app.client.get('/health/live')).status).toBe(200);
      const late = new WebSocket(`ws://127.0.0.1:${app.port}${path}`, bearer(app.apiKey));
      late.on('error', () => undefined);
      expect(await refusalOf(late)).toMatchObject({ status: 503, body: { code: 'unavailable' } });
      await over;
      expect(performance.now() - startedAt).toBeLessThan(10_000);
    },
  );
});

describe('the start fails', () => {
  test('for a gateway with its own port', async () => {
    @WebSocketGateway(0xfffe)
    @Public()
    class OwnPort {}
    @Module({ providers: [OwnPort] })
    class OwnPortModule {}
    await expect(createTestApp({ features: [OwnPortModule] })).rejects.toThrow(
      'OwnPort listens on a port of its own, where nothing checks API keys and limits. Leave the port out',
    );
  });

  test('for an adapter whose servers cannot be closed', async () => {
    class OtherAdapter extends WsAdapter {
      override create(): never {
        return { on: () => undefined } as never;
      }
    }
    const start = createTestApp({
      features: [WsModule],
      setUp: (nest) => void nest.useWebSocketAdapter(new OtherAdapter(nest)),
    });
    await expect(start).rejects.toThrow(
      'OtherAdapter makes servers that the platform cannot close to clients without an API key.',
    );
  });
});

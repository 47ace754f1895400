import { Injectable, Module } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { type OnGatewayConnection, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { ApiKeysService } from '#access';
import { Public } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';

/* A WebSocket gateway that checks keys itself. `refused-starts` has those that nothing would protect. */

@Public()
@WebSocketGateway({ path: '/news' })
class NewsGateway implements OnGatewayConnection<WebSocket> {
  constructor(private readonly apiKeys: ApiKeysService) {}

  async handleConnection(client: WebSocket, request: IncomingMessage): Promise<void> {
    const [, token = ''] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    try {
      const key = await this.apiKeys.verify(token);
      client.send(`Welcome, ${key.client.name}.`);
    } catch {
      // 1008 is the code for a violated policy (RFC 6455, section 7.4.1).
      client.close(1008, 'A valid API key is needed.');
    }
  }

  @SubscribeMessage('ping')
  ping(): { event: string; data: string } {
    return { event: 'pong', data: 'pong' };
  }
}

@Injectable()
class Tasks {
  double(value: number): number {
    if (value < 0) throw new RangeError('It is negative.');
    return value * 2;
  }
}

@Module({ providers: [NewsGateway, Tasks] })
class NewsModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({
    features: [NewsModule],
    setUp: (nest) => void nest.useWebSocketAdapter(new WsAdapter(nest)),
  });
});
afterAll(() => app.close());

test('a public gateway checks keys itself, and HTTP requests are served as well', async () => {
  const connect = (key: string): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${app.port}/news`, { headers: { authorization: `Bearer ${key}` } });
  const [code] = (await once(connect('no-key'), 'close')) as [number];
  expect(code).toBe(1008);
  const client = connect(app.apiKey);
  expect(String((await once(client, 'message'))[0])).toMatch(/^Welcome, /);
  client.send('{"event":"ping"}');
  expect(String((await once(client, 'message'))[0])).toBe('{"event":"pong","data":"pong"}');
  expect((await app.client.get('/v1/pets')).status).toBe(200);
  expect((await app.client.get('/v1/pets', { apiKey: null })).status).toBe(401);
});

test('what code calls by ExternalContextCreator passes the platform, and its errors reach the caller', async () => {
  const tasks = app.nest.get(Tasks);
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Nest calls it with its instance
  const double = app.nest.get(ExternalContextCreator).create(tasks, tasks.double as never, 'double');
  expect(await double(4)).toBe(8);
  await expect(double(-1)).rejects.toThrow('It is negative.');
});

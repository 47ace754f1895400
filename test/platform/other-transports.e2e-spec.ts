import { Controller, Injectable, Module, SetMetadata, type Type } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { type OnGatewayConnection, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { ApiKeysService } from '#access';
import { Public, RequireScopes } from '#operations';
import { createTestApp } from '../support/app.js';

/* WebSocket gateways, GraphQL resolvers and handlers of messages: closed by refusal, or open and on their own. */

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

@WebSocketGateway()
class ClosedGateway {}

/** Marked as by @nestjs/graphql, which is not installed here. */
@Injectable()
class ClosedResolver {
  @SetMetadata('graphql:resolver_type', 'Query')
  pets(): void {}
}

@Injectable()
class ClosedFields {
  @SetMetadata('graphql:resolve_property', true)
  name(): void {}
}

@Injectable()
class ClosedReferences {
  @SetMetadata('graphql:resolve_reference', true)
  find(): void {}
}

@Controller()
class ClosedMessagesController {
  @MessagePattern('closed')
  closed(): void {}
}

@Public()
@WebSocketGateway()
class ScopedGateway {
  @RequireScopes('news:read')
  @SubscribeMessage('scoped')
  scoped(): void {}
}

test.each<[string, Type]>([
  ['the message handler ScopedGateway.scoped', ScopedGateway],
  ['the gateway ClosedGateway', ClosedGateway],
  ['the resolver ClosedResolver.pets', ClosedResolver],
  ['the resolver ClosedFields.name', ClosedFields],
  ['the resolver ClosedReferences.find', ClosedReferences],
  ['the message handler ClosedMessagesController.closed', ClosedMessagesController],
])('the start fails for %s, and says how to check a key', async (name, type) => {
  @Module(type === ClosedMessagesController ? { controllers: [type] } : { providers: [type] })
  class ClosedModule {}

  await expect(createTestApp({ features: [ClosedModule] })).rejects.toThrow(
    `nothing would protect ${name}. Add @Public(), and check the key in the handler: await apiKeys.verify(token)`,
  );
});

test('the start fails for a resolver that a factory makes', async () => {
  @Module({ providers: [{ provide: 'resolver', useFactory: () => new ClosedResolver() }] })
  class ClosedModule {}

  await expect(createTestApp({ features: [ClosedModule] })).rejects.toThrow(
    'protect the resolver ClosedResolver.pets.',
  );
});

test('a public gateway checks keys itself, and HTTP requests are served as well', async () => {
  @Module({ providers: [NewsGateway] })
  class NewsModule {}

  const app = await createTestApp({
    features: [NewsModule],
    setUp: (nest) => void nest.useWebSocketAdapter(new WsAdapter(nest)),
  });
  try {
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
  } finally {
    await app.close();
  }
});

import { EventPattern, GrpcMethod, GrpcStreamCall, GrpcStreamMethod, MessagePattern } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { unprotectedIn } from './other-transports.internals.js';

test('every decorator for handlers of other transports is noticed', () => {
  class News {
    @MessagePattern('a') message(_data: unknown): void {}
    @EventPattern('b') event(_data: unknown): void {}
    @GrpcMethod() method(): void {}
    @GrpcStreamMethod() streamed(): void {}
    @GrpcStreamCall() call(): void {}
    @SubscribeMessage('c') subscribed(): void {}
    other(): void {}
  }
  const methods = ['message', 'event', 'method', 'streamed', 'call', 'subscribed'];
  expect(unprotectedIn(News)).toEqual(methods.map((name) => `News.${name}`));
  WebSocketGateway()(News);
  expect(unprotectedIn(News)).toEqual(['News']);
});

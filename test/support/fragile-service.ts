import {
  type ArgumentsHost,
  Catch,
  ConflictException,
  type ExceptionFilter,
  Get,
  Header,
  HttpCode,
  Module,
  Res,
  StreamableFile,
  UseFilters,
} from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { type OnGatewayConnection, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import type { Response } from 'express';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, defineError } from '#errors';
import { Public } from '#operations';
import { startService } from '#service';
import { type Declared, Handlers, type Parameter } from '../ordinary-nest/handlers.js';
import { appModuleWith } from './app.js';

/*
 * The service with modules that answer in ways of their own, for tests that look whether its process lives:
 * `node --import ./test/support/register-typescript.js test/support/fragile-service.ts socket.io`
 */

const [transport = 'none'] = process.argv.splice(2);

const SOLD = defineError('fragile_sold', 409, 'The toy is sold.');

@Catch(ConflictException)
class RejectingFilter implements ExceptionFilter {
  async catch(exception: ConflictException, host: ArgumentsHost): Promise<void> {
    const response = host.switchToHttp().getResponse<Response>();
    if (exception.message === 'after the head') response.status(409).write('{');
    await sleep(1);
    throw new Error('The filter failed.');
  }
}

@Catch(ConflictException)
class ThrowingFilter implements ExceptionFilter {
  catch(): never {
    throw new Error('The filter failed.');
  }
}

const FRAGILE = new Handlers('test-fragile');
const add = (name: string, answer: unknown, declared: Declared = {}): void =>
  FRAGILE.add(Get(name), name, answer, declared);
const fails = (error: () => Error) => (): never => {
  throw error();
};
const named =
  <Answer>(answer: () => Answer) =>
  (response: Response): Answer => {
    response.statusMessage = 'Pet 中';
    return answer();
  };
const file = (): StreamableFile => new StreamableFile(Readable.from(['a', 'b']));
const RESPONSE = { parameters: [[Res(), Object] as Parameter] };
const PASSED = { parameters: [[Res({ passthrough: true }), Object] as Parameter] };
const TRAILER = Header('Trailer', 'X-Sum');
const inCircle: Record<string, unknown> = {};
inCircle.self = inCircle;

add(
  'message',
  named(() => ({ name: 'Rex' })),
  PASSED,
);
add('message-of-error', named(fails(() => new ApiError(SOLD))), PASSED);
add('message-of-file', named(file), PASSED);
add('message-of-head', (response: Response) => void response.writeHead(200, 'Pet 中').end(), RESPONSE);
const writeLines = (response: Response): void => {
  response.statusMessage = 'a\nb';
  response.write('a');
  response.end('b');
};
add('lines', writeLines, RESPONSE);
const writeTrailer = (response: Response): void => {
  response.write('a');
  response.addTrailers({ 'X-Sum': '1' });
  response.end();
};
add('trailer', writeTrailer, { ...RESPONSE, decorators: [TRAILER] });
add('trailer-of-file', file, { decorators: [TRAILER] });
add('trailer-204', () => undefined, { decorators: [TRAILER, HttpCode(204)] });
add('trailer-304', () => undefined, { decorators: [TRAILER, HttpCode(304)] });
const failsInCircle = fails(() => new ApiError(SOLD, 'It is sold.', {}, { details: inCircle }));
add('details', failsInCircle);
for (const [name, message, filter] of [
  ['rejecting', 'before the head', RejectingFilter],
  ['rejecting-late', 'after the head', RejectingFilter],
  ['throwing', 'before the head', ThrowingFilter],
] as const) {
  const fail = fails(() => new ConflictException(message));
  add(name, fail, { decorators: [UseFilters(filter)] });
}
add('slow', () => sleep(300, 'slow'));

@Public()
@WebSocketGateway({ path: transport === 'ws' ? '/news' : '/socket.io' })
class NewsGateway implements OnGatewayConnection {
  handleConnection(): void {}

  @SubscribeMessage('ping')
  ping(): object {
    return { event: 'pong' };
  }
}

/** Takes requests as engine.io and sockjs do: in front of every listener, which it calls for all others. */
function takeRequests(server: Server): void {
  const listeners = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!request.url?.startsWith('/taken')) listeners.forEach((listener) => listener.call(server, request, response));
    else setTimeout(() => response.writeHead(202, { 'Content-Type': 'text/html' }).end('taken'), 100);
  });
  // Answers, and does not keep the others from it.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/answered') response.end('answered');
  });
}

const providers = transport === 'none' ? [] : [NewsGateway];

@Module({ controllers: [FRAGILE.controller], providers })
class FragileModule {}

await startService(appModuleWith({ features: [FragileModule] }), {
  setUp: (app) => {
    if (transport === 'socket.io') app.useWebSocketAdapter(new IoAdapter(app));
    if (transport === 'ws') app.useWebSocketAdapter(new WsAdapter(app));
    if (transport === 'none') takeRequests(app.getHttpServer() as Server);
  },
});

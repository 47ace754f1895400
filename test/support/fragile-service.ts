import {
  type ArgumentsHost,
  Catch,
  ConflictException,
  Controller,
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
import { appModuleWith } from './app.js';

/*
 * The service with modules that answer in ways of their own, for tests that look whether its process lives:
 * `node --import ./test/support/register-typescript.js test/support/fragile-service.ts socket.io`
 */

const [transport = 'none'] = process.argv.slice(2);

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

@Public()
@Controller('test-fragile')
class FragileController {
  @Get('message')
  message(@Res({ passthrough: true }) response: Response): object {
    response.statusMessage = 'Pet 中';
    return { name: 'Rex' };
  }

  @Get('lines')
  lines(@Res() response: Response): void {
    response.statusMessage = 'a\nb';
    response.write('a');
    response.write('b');
    response.end();
  }

  @Get('message-of-error')
  messageOfError(@Res({ passthrough: true }) response: Response): never {
    response.statusMessage = 'Pet 中';
    throw new ApiError(SOLD);
  }

  @Get('message-of-file')
  messageOfFile(@Res({ passthrough: true }) response: Response): StreamableFile {
    response.statusMessage = 'Pet 中';
    return new StreamableFile(Readable.from(['a', 'b']));
  }

  @Get('message-of-head')
  messageOfHead(@Res() response: Response): void {
    response.writeHead(200, 'Pet 中').end();
  }

  @Get('trailer')
  @Header('Trailer', 'X-Sum')
  trailer(@Res() response: Response): void {
    response.write('a');
    response.addTrailers({ 'X-Sum': '1' });
    response.end();
  }

  @Get('trailer-of-file')
  @Header('Trailer', 'X-Sum')
  trailerOfFile(): StreamableFile {
    return new StreamableFile(Readable.from(['a', 'b']));
  }

  @Get('trailer-204')
  @Header('Trailer', 'X-Sum')
  @HttpCode(204)
  trailerOfNothing(): void {}

  @Get('trailer-304')
  @Header('Trailer', 'X-Sum')
  @HttpCode(304)
  trailerOfUnchanged(): void {}

  @Get('details')
  details(): never {
    const details: Record<string, unknown> = {};
    details.self = details;
    throw new ApiError(SOLD, 'It is sold.', {}, { details });
  }

  @Get('rejecting')
  @UseFilters(RejectingFilter)
  rejecting(): never {
    throw new ConflictException('before the head');
  }

  @Get('rejecting-late')
  @UseFilters(RejectingFilter)
  rejectingLate(): never {
    throw new ConflictException('after the head');
  }

  @Get('throwing')
  @UseFilters(ThrowingFilter)
  throwing(): never {
    throw new ConflictException();
  }

  @Get('slow')
  async slow(): Promise<string> {
    await sleep(300);
    return 'slow';
  }
}

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

@Module({ controllers: [FragileController], providers })
class FragileModule {}

await startService(appModuleWith({ features: [FragileModule] }), {
  setUp: (app) => {
    if (transport === 'socket.io') app.useWebSocketAdapter(new IoAdapter(app));
    if (transport === 'ws') app.useWebSocketAdapter(new WsAdapter(app));
    if (transport === 'none') takeRequests(app.getHttpServer() as Server);
  },
});

import {
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestModule,
  Post,
  Req,
  Res,
  UploadedFile,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { IsString } from 'class-validator';
import express, { type NextFunction, type Request, type Response } from 'express';
import type { Observable } from 'rxjs';
import { Public } from '#operations';
import type { Row } from './harness.js';

class Note {
  @IsString()
  text: string;
}

class PasswordGuard implements CanActivate {
  canActivate(execution: ExecutionContext): boolean {
    const { body } = execution.switchToHttp().getRequest<{ body?: { text?: string } }>();
    return body?.text === 'open';
  }
}

class ReplacingInterceptor implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = execution.switchToHttp().getRequest<{ body: { text: string } }>();
    request.body = { text: `${request.body.text}, replaced` };
    return next.handle();
  }
}

@Public()
@Controller('test-bodies')
class TestBodiesController {
  @Post('guarded')
  @HttpCode(200)
  @UseGuards(PasswordGuard)
  addGuarded(@Body() note: Note): object {
    return { ...note };
  }

  @Post('replaced')
  @HttpCode(200)
  @UseInterceptors(ReplacingInterceptor)
  addReplaced(@Body() note: Note): object {
    return { ...note };
  }

  @Post('by-request')
  @HttpCode(200)
  byRequest(@Req() { body }: Request): unknown {
    return { type: typeof body, body: body as unknown };
  }

  @Post('streamed')
  @HttpCode(200)
  async streamed(@Req() request: Request): Promise<object> {
    let bytes = 0;
    for await (const chunk of request) bytes += (chunk as Buffer).length;
    return { bytes };
  }

  @Post('file')
  @UseInterceptors(FileInterceptor('file', { limits: { fileSize: 100_000 } }))
  uploadFile(
    @UploadedFile() { originalname, buffer }: { originalname: string; buffer: Buffer },
    @Body() note: Note,
  ): object {
    return { originalname, text: buffer.toString(), note, isNote: note instanceof Note };
  }

  @Post('looked-at')
  @HttpCode(200)
  addLookedAt(@Res({ passthrough: true }) response: Response, @Body() note?: Note): object {
    return { seen: response.get('X-Seen'), note: note?.text };
  }

  @Post('any')
  @HttpCode(200)
  addAny(@Body() body: { hasOwnProperty(name: string): boolean }): object {
    // eslint-disable-next-line no-prototype-builtins -- modules call it
    return { has: body.hasOwnProperty('a'), isObject: body instanceof Object, body: JSON.stringify(body) };
  }

  @Post('reset')
  @HttpCode(205)
  reset(): object {
    return { text: 'not sent' };
  }

  @Post('none')
  @HttpCode(204)
  none(): object {
    return { text: 'not sent' };
  }

  @Post('parsed')
  @HttpCode(200)
  addParsed(@Body() body: unknown): unknown {
    return { body: Buffer.isBuffer(body) ? body.toString('hex') : body };
  }
}

@Module({ controllers: [TestBodiesController] })
export class BodiesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    const look = (request: Request, response: Response, next: NextFunction): void => {
      response.set('X-Seen', Object.prototype.toString.call(request.body));
      next();
    };
    consumer.apply(express.raw({ type: '*/*' })).forRoutes('test-bodies/parsed');
    consumer.apply(look).forRoutes('test-bodies/looked-at');
  }
}

const FORM = [
  ['text', 'of a form'],
  ['file', 'Ä rex', 'rex.txt'],
  ['file', 'max', 'max.txt'],
];

/** A body of multipart/form-data with one field and the given files. */
function form(files: number): Pick<Row, 'method' | 'send'> {
  const parts = FORM.slice(0, 1 + files).map(
    ([name, text, file]) =>
      `--x\r\nContent-Disposition: form-data; name="${name}"${file === undefined ? '' : `; filename="${file}"`}\r\n\r\n${text}\r\n`,
  );
  return sent('multipart/form-data; boundary=x', `${parts.join('')}--x--\r\n`);
}

function sent(type: string, body: string): Pick<Row, 'method' | 'send'> {
  return { method: 'POST', send: { body, headers: { 'content-type': type } } };
}

const post = (title: string, path: string, more: Partial<Row> = {}): Row => ({
  title,
  path: `/v1/test-bodies/${path}`,
  status: 200,
  ...sent('application/json', '{ "text":"open" }'),
  ...more,
});

const error = (status: number, code: string): object => ({ code, message: expect.any(String) as string, status });

export const BODIES: readonly Row[] = [
  post('a guard that reads it', 'guarded', { contains: 'open' }),
  post('an interceptor that replaces it', 'replaced', { contains: 'open, replaced' }),
  post('@Req()', 'by-request', { contains: '"open"' }),
  post('@Req() without a body', 'by-request', { send: {}, contains: '"undefined"' }),
  post('@Req() of JSON that is no object', 'by-request', {
    ...sent('application/json', 'null'),
    status: 400,
    meant: {
      difference: 'faults of input',
      body: { ...error(400, 'validation_failed'), message: 'the body must be a JSON object or array' },
    },
  }),
  post('@Req() that reads the bytes', 'streamed', { ...sent('text/plain', 'x'.repeat(200_000)), contains: '200000' }),
  post('FileInterceptor and @Body()', 'file', { ...form(1), status: 201, contains: '"isNote":true' }),
  post('FileInterceptor with a file that is not expected', 'file', { ...form(2), status: 400 }),
  post('multer with a body that is cut', 'file', {
    ...sent('multipart/form-data; boundary=x', '--x\r\n'),
    status: 400,
  }),
  post('express.raw()', 'parsed', { ...sent('application/octet-stream', 'raw'), contains: '726177' }),
  post('a middleware that looks at it', 'looked-at', {
    meant: { difference: 'body in middleware', body: { seen: '[object Undefined]', note: 'open' } },
  }),
  post('a form that is not declared', 'looked-at', {
    ...sent('application/x-www-form-urlencoded', 'text=open'),
    meant: { difference: 'types of bodies', status: 415, body: error(415, 'unsupported_media_type') },
  }),
  post('members and numbers of any kind', 'any', {
    ...sent(
      'application/json; profile="x; charset=y"; version=1',
      '{"a":9007199254740993,"__proto__":{"b":1e40},"constructor":[6.0000000000000000001,1e-400,-0],"c":{}}',
    ),
    contains: '"has":true,"isObject":true',
  }),
  post('@HttpCode(205)', 'reset', { status: 205 }),
  post('@HttpCode(204)', 'none', { status: 204 }),
  post('text that PostgreSQL cannot store', 'looked-at', {
    ...sent('application/json', '{"text":"a\\u0000"}'),
    meant: {
      difference: 'input that cannot be stored',
      status: 400,
      body: {
        ...error(400, 'validation_failed'),
        message: 'text must not contain NUL, unpaired surrogates or bytes that are not UTF-8',
      },
    },
  }),
  post('no body', 'looked-at', {
    send: {},
    status: 400,
    meant: { difference: 'types of bodies', body: error(400, 'missing_body') },
  }),
];

import {
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestModule,
  Post,
  RawBody,
  type RawBodyRequest,
  Req,
  Res,
  UploadedFile,
  UploadedFiles,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApiConsumes } from '@nestjs/swagger';
import { FileInterceptor, FilesInterceptor, NoFilesInterceptor } from '@nestjs/platform-express';
import { IsString } from 'class-validator';
import express, { type NextFunction, type Request, type Response } from 'express';
import { gzipSync } from 'node:zlib';
import { map, type Observable } from 'rxjs';
import { Public } from '../../src/platform/auth/public.decorator.js';
import type { Row } from './harness.js';

class Note {
  @IsString()
  text: string;
}

interface UploadedBytes {
  originalname: string;
  buffer: Buffer;
}
const nameAndText = ({ originalname, buffer }: UploadedBytes): object => ({ originalname, text: buffer.toString() });

/** The value of `request.body`, read without waiting for it. */
const seenIn = (request: Request): unknown => ({ type: typeof request.body, body: request.body as unknown });

const SeenBody = createParamDecorator((_: unknown, execution: ExecutionContext) =>
  seenIn(execution.switchToHttp().getRequest<Request>()),
);

class PasswordGuard implements CanActivate {
  canActivate(execution: ExecutionContext): boolean {
    const { body } = execution.switchToHttp().getRequest<{ body?: { text?: string } }>();
    return body?.text === 'open';
  }
}

class SeenInterceptor implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    const seen = JSON.stringify(seenIn(execution.switchToHttp().getRequest<Request>()));
    return next.handle().pipe(map((data: unknown) => ({ data, seen })));
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

  @Post('seen')
  @HttpCode(200)
  @UseInterceptors(SeenInterceptor)
  addSeen(@Body() note: Note): object {
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
  byRequest(@Req() request: Request): unknown {
    return seenIn(request);
  }

  @Post('by-decorator')
  @HttpCode(200)
  byDecorator(@SeenBody() seen: unknown): unknown {
    return seen;
  }

  @Post('streamed')
  @HttpCode(200)
  async streamed(@Req() request: Request): Promise<object> {
    let bytes = 0;
    for await (const chunk of request) bytes += (chunk as Buffer).length;
    return { bytes };
  }

  @Post('file')
  @UseInterceptors(FileInterceptor('file'))
  uploadFile(@UploadedFile() file: UploadedBytes): object {
    return nameAndText(file);
  }

  @Post('file-and-note')
  @UseInterceptors(FileInterceptor('file', { limits: { fileSize: 100_000 } }))
  uploadFileAndNote(@UploadedFile() file: UploadedBytes, @Body() note: Note): object {
    return { ...nameAndText(file), note, isNote: note instanceof Note };
  }

  @Post('files')
  @UseInterceptors(FilesInterceptor('file'))
  uploadFiles(@UploadedFiles() files: UploadedBytes[], @Body('text') text: unknown): object {
    return { files: files.map(nameAndText), text };
  }

  @Post('no-files')
  @ApiConsumes('multipart/form-data', 'application/json')
  @UseInterceptors(NoFilesInterceptor())
  uploadNoFiles(@Body() note: Note): object {
    return { ...note };
  }

  @Post('raw')
  @HttpCode(200)
  readRaw(@RawBody() bytes: Buffer, @Body() note: Note): object {
    return { text: bytes.toString(), note: note.text };
  }

  @Post('raw-by-request')
  @HttpCode(200)
  readRawByRequest(@Req() request: RawBodyRequest<Request>): object {
    return { text: request.rawBody?.toString() };
  }

  @Post('form')
  @HttpCode(200)
  @ApiConsumes('application/x-www-form-urlencoded', 'application/json')
  addForm(@Body() body: unknown): unknown {
    return body;
  }

  @Post('text')
  @HttpCode(200)
  @ApiConsumes('text/plain')
  addText(@Body() text: string): unknown {
    return { text };
  }

  @Post('looked-at')
  @HttpCode(200)
  addLookedAt(@Res({ passthrough: true }) response: Response, @Body() note?: Note): object {
    return { seen: response.get('X-Seen'), note: note?.text };
  }

  @Post('parsed/:type')
  @HttpCode(200)
  addParsed(@Body() body: unknown): unknown {
    return { body: Buffer.isBuffer(body) ? body.toString('hex') : body };
  }
}

/** A middleware that answers, behind its own parser, as GraphQL servers have it. */
function answerQuery({ body }: { body?: { query?: string } }, response: Response, next: NextFunction): void {
  if (body?.query === undefined) next();
  else response.json({ data: body.query });
}

@Module({ controllers: [TestBodiesController] })
export class BodiesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    const parsers = {
      json: express.json(),
      form: express.urlencoded({ extended: true }),
      text: express.text(),
      raw: express.raw({ type: '*/*' }),
    };
    for (const [name, parser] of Object.entries(parsers))
      consumer.apply(parser).forRoutes(`test-bodies/parsed/${name}`);
    consumer
      .apply(express.json({ type: 'application/graphql+json' }), answerQuery)
      .forRoutes('test-bodies/parsed/query');
    consumer
      .apply((request: Request, response: Response, next: NextFunction) => {
        response.set('X-Seen', Object.prototype.toString.call(request.body));
        next();
      })
      .forRoutes('test-bodies/looked-at');
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

const JSON_TYPE = 'application/json';
const post = (title: string, path: string, more: Partial<Row> = {}): Row => ({
  title,
  path: `/v1/test-bodies/${path}`,
  status: 200,
  ...sent(JSON_TYPE, '{"text":"open"}'),
  ...more,
});

const error = (status: number, code: string): object => ({ code, message: expect.any(String) as string, status });

export const BODIES: readonly Row[] = [
  post('a guard that reads it', 'guarded', { contains: 'open' }),
  post('a guard that refuses what it reads', 'guarded', { ...sent(JSON_TYPE, '{"text":"shut"}'), status: 403 }),
  post('a guard that finds none', 'guarded', {
    method: 'POST',
    send: {},
    status: 403,
    meant: { difference: 'no body', status: 400, body: error(400, 'missing_body') },
  }),
  post('an interceptor that reads it', 'seen', { contains: String.raw`\"text\":\"open\"` }),
  post('an interceptor that replaces it', 'replaced', { contains: 'open, replaced' }),
  post('@Req()', 'by-request', { contains: '"open"' }),
  post('@Req() without a body', 'by-request', { method: 'POST', send: {}, contains: '"undefined"' }),
  post('@Req() that reads the bytes', 'streamed', { ...sent('text/plain', 'x'.repeat(200_000)), contains: '200000' }),
  post('a decorator that reads it', 'by-decorator', { contains: '"open"' }),
  post('FileInterceptor', 'file', { ...form(1), status: 201, contains: 'Ä rex' }),
  post('FileInterceptor and @Body()', 'file-and-note', { ...form(1), status: 201, contains: '"isNote":true' }),
  post('FileInterceptor with a file that is not expected', 'file', { ...form(2), status: 400 }),
  post('FilesInterceptor and @Body(name)', 'files', { ...form(2), status: 201, contains: '"text":"of a form"' }),
  post('multer with a body that is cut', 'file', {
    ...sent('multipart/form-data; boundary=x', '--x\r\n'),
    status: 400,
  }),
  post('multer with JSON', 'no-files', { status: 201, contains: 'open' }),
  post('express.json()', 'parsed/json', { contains: 'open' }),
  post('express.urlencoded()', 'parsed/form', {
    ...sent('application/x-www-form-urlencoded', 'text=a+b&list[]=1&list[]=2&of[name]=%C3%A4'),
    contains: '"of":{"name":"ä"}',
  }),
  post('express.text()', 'parsed/text', { ...sent('text/plain', 'plain ü'), contains: 'plain ü' }),
  post('express.raw()', 'parsed/raw', { ...sent('application/octet-stream', 'raw'), contains: '726177' }),
  post('a middleware that answers what its own parser has read', 'parsed/query', {
    ...sent('application/graphql+json', '{"query":"{ all }"}'),
    contains: '{ all }',
  }),
  post('@RawBody()', 'raw', { ...sent(JSON_TYPE, '{ "text":"a" }'), contains: '{ \\"text\\":\\"a\\" }' }),
  post('rawBody of @Req()', 'raw-by-request', { contains: 'open' }),
  post('a declared form', 'form', {
    ...sent('application/x-www-form-urlencoded', 'text=a+b&list[]=1&list[]=2&of[name]=%C3%A4&of[a]=1&twice=1&twice=2'),
    contains: '"twice":["1","2"]',
  }),
  post('gzip', 'form', {
    method: 'POST',
    send: { body: gzipSync('{"text":"small"}'), headers: { 'content-encoding': 'gzip' } },
    contains: 'small',
  }),
  post('declared text', 'text', {
    ...sent('text/plain', 'plain'),
    meant: { difference: 'types of bodies', body: { text: 'plain' } },
  }),
  post('a middleware that looks at it', 'looked-at', {
    meant: { difference: 'body in middleware', body: { seen: '[object Undefined]', note: 'open' } },
  }),
  post('a form', 'looked-at', {
    ...sent('application/x-www-form-urlencoded', 'text=open'),
    meant: { difference: 'types of bodies', status: 415, body: error(415, 'unsupported_media_type') },
  }),
  post('no body', 'looked-at', {
    method: 'POST',
    send: {},
    status: 400,
    meant: { difference: 'no body', body: error(400, 'missing_body') },
  }),
];

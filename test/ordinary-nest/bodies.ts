import {
  Body,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Post,
  Req,
  Res,
  UploadedFile,
  UseInterceptors,
} from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { IsString } from 'class-validator';
import express, { type NextFunction, type Request, type Response } from 'express';
import { Handlers, type Parameter } from './handlers.js';
import type { Row } from './harness.js';

class Note {
  @IsString() text: string;
}

const BODY = new Handlers('test-bodies');
const NOTE: Parameter = [Body(), Note];

BODY.bodies(
  ({ text }: Note) => ({ text }),
  { replaced: Note },
  UseInterceptors({
    intercept: (execution, next) => {
      const request = execution.switchToHttp().getRequest<{ body: Note }>();
      request.body = { text: `${request.body.text}, replaced` };
      return next.handle();
    },
  }),
);
BODY.bodies(({ body }: Request) => ({ type: typeof body, body: body as unknown }), { 'by-request': [Req(), Object] });
BODY.bodies(
  async (request: Request) => {
    let bytes = 0;
    for await (const chunk of request) bytes += (chunk as Buffer).length;
    return { bytes };
  },
  { streamed: [Req(), Object] },
);
BODY.add(
  Post('file'),
  'file',
  ({ originalname, buffer }: { originalname: string; buffer: Buffer }, note: Note) => ({
    ...{ originalname, text: buffer.toString(), note },
    isNote: note instanceof Note,
  }),
  {
    parameters: [[UploadedFile(), Object], NOTE],
    decorators: [UseInterceptors(FileInterceptor('file', { limits: { fileSize: 100_000 } }))],
  },
);
BODY.add(
  Post('looked-at'),
  'looked-at',
  (response: Response, note?: Note) => ({ seen: response.get('X-Seen'), note: note?.text }),
  { parameters: [[Res({ passthrough: true }), Object], NOTE], decorators: [HttpCode(200)] },
);
BODY.add(Post('reset'), 'reset', () => ({ text: 'not sent' }), { decorators: [HttpCode(205)] });
BODY.add(Post('none'), 'none', () => ({ text: 'not sent' }), { decorators: [HttpCode(204)] });
BODY.bodies((body: unknown) => ({ body: Buffer.isBuffer(body) ? body.toString('hex') : body }), { parsed: Object });

@Module({ controllers: [BODY.controller] })
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
  post('@HttpCode(205)', 'reset', { status: 205 }),
  post('@HttpCode(204)', 'none', { status: 204 }),
];

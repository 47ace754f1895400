import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestModule,
  Post,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { FileInterceptor } from '@nestjs/platform-express';
import express, { type Request } from 'express';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { TextProperty } from '#input';
import { Public, RequireScopes } from '#operations';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';
import { until } from '../support/until.js';

class Note {
  @TextProperty({ description: 'What to remember.', minLength: 1, maxLength: 20 }) readonly text!: string;
}

let guarded = 0;

const countingGuard: CanActivate = { canActivate: () => ++guarded > 0 };

const NOTES = new Handlers('test-notes');
NOTES.add(Post(), 'add', (note: Note) => ({ text: note.text, isNote: note instanceof Note }), {
  parameters: [[Body(), Note]],
});

const UPLOADS = new Handlers('test-uploads');
const GUARDED = [RequireScopes(), UseGuards(countingGuard)];
UPLOADS.add(Post(), 'upload', () => 'uploaded', { decorators: [...GUARDED, UseInterceptors(FileInterceptor('file'))] });
UPLOADS.add(Post('note'), 'note', (note: Note) => note.text, { parameters: [[Body(), Note]], decorators: GUARDED });

let seen: unknown[] = [];

function look(context: ExecutionContext): true {
  const { body, rawBody } = context.switchToHttp().getRequest<Request>();
  seen.push([body, rawBody?.toString()]);
  return true;
}

const tenantGuard: CanActivate = { canActivate: look };
const auditInterceptor: NestInterceptor = { intercept: (context, next) => (look(context), next.handle()) };

const LOGINS = new Handlers('test-logins');
const answer = (): object => ({});
LOGINS.add(Post('guarded'), 'guarded', answer, { decorators: [UseGuards(tenantGuard)] });
LOGINS.add(Post('audited'), 'audited', answer, { decorators: [UseInterceptors(auditInterceptor)] });
LOGINS.add(Post('plain'), 'plain', answer);
LOGINS.add(Post('closed'), 'closed', answer, { decorators: [RequireScopes('toys:read'), UseGuards(tenantGuard)] });

@Injectable({ scope: Scope.REQUEST })
class SentNote {
  constructor(@Inject(REQUEST) readonly request: Request) {}
}

@Public()
@Controller('test-sent')
class TestSentController {
  constructor(private readonly sent: SentNote) {}

  @Post()
  add(@Body() _: Note): unknown {
    return this.sent.request.body;
  }
}

@Module({
  controllers: [NOTES.controller, UPLOADS.controller, LOGINS.controller, TestSentController],
  providers: [SentNote],
})
class NotesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(express.json()).forRoutes('test-notes');
  }
}

let app: TestApp;
beforeAll(
  async () => (app = await createTestApp({ features: [NotesModule], settings: { REQUEST_TIMEOUT_MS: '500' } })),
);
afterAll(() => app.close());

test('a provider with the scope of a request sees the plain value of the body', async () => {
  expect((await app.client.post('/v1/test-sent', { text: 'sent' })).json).toEqual({ text: 'sent' });
});

test('express.json() sets request.body, and @Body() validates it', async () => {
  const post = async (body?: unknown): Promise<unknown> => (await app.client.post('/v1/test-notes', body)).json;
  expect(await post({ text: 'parsed' })).toEqual({ text: 'parsed', isNote: true });
  expect(await post({ text: 1 })).toMatchObject({ code: 'validation_failed' });
  expect(await post()).toMatchObject({ code: 'missing_body' });
  expect(await post('{')).toMatchObject({ status: 400 });
});

describe('bodies that code of modules reads', () => {
  const FORM = 'multipart/form-data; boundary=x';
  const PART = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nrex';
  const JSON_TYPE = 'application/json';

  function head(path: string, type: string, length: number, ...more: string[]): string {
    const fields = [`Content-Type: ${type}`, `Content-Length: ${length}`, `Authorization: Bearer ${app.apiKey}`];
    return `${[`POST ${path} HTTP/1.1`, 'Host: x', ...fields, ...more].join('\r\n')}\r\n\r\n`;
  }

  const READERS: [reader: string, path: string, type: string, body: string][] = [
    ['multer', '/v1/test-uploads', FORM, `${PART}\r\n--x--\r\n`],
    ['express.json()', '/v1/test-notes', JSON_TYPE, '{"text":"rex"}'],
    ['a guard', '/v1/test-uploads/note', JSON_TYPE, '{"text":"rex"}'],
  ];

  // Middleware reads before the key is known.
  test.each(READERS.filter(([reader]) => reader !== 'express.json()'))(
    '100 Continue for %s, behind the key',
    async (_, path, type, body) => {
      const answer = await rawRequest(app.port, head(path, type, body.length, 'Expect: 100-continue'), {
        then: { after: '100 Continue\r\n\r\n', send: body },
        until: ' 201 ',
      });
      expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
    },
  );

  test.each(READERS)('408 request_timeout: half a body for %s and then silence', async (_, path, type, body) => {
    const answer = await rawRequest(app.port, `${head(path, type, body.length)}${body.slice(0, 12)}`);
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test.each(READERS)('a client that disconnects while %s reads causes no error', async (reader, path, type, body) => {
    const id = reader.replace(/\W/g, '');
    const socket = connect(app.port, '127.0.0.1').on('error', () => undefined);
    socket.write(`${head(path, type, body.length, `X-Request-Id: ${id}`)}${body.slice(0, 12)}`);
    await once(app.nest.getHttpServer() as Server, 'request');
    await app.client.get('/v1/pets');
    socket.destroy();
    const line = await until(() => app.log.requests.find(({ requestId }) => requestId === id));
    expect(line).toMatchObject({ aborted: true });
    expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
  });

  test('nothing is read before the API key is checked, also not for guards and interceptors', async () => {
    guarded = 0;
    const text = head('/v1/test-uploads/note', JSON_TYPE, 100).replace('Bearer ', 'Bearer x');
    expect(await rawRequest(app.port, text)).toMatch(/^HTTP\/1\.1 401 /);
    expect(guarded).toBe(0);
  });

  test('a fault in a body that guards and interceptors get is reported before they run', async () => {
    guarded = 0;
    const post = (body: string): Promise<unknown> => app.client.post('/v1/test-uploads/note', body);
    expect(await post('{')).toMatchObject({ status: 400, json: { code: 'malformed_json' } });
    expect(await post(JSON.stringify('x'.repeat(70_000)))).toMatchObject({ status: 413 });
    expect(guarded).toBe(0);
  });
});

/* Guards and interceptors of modules see a JSON body also where the handler takes none, as on stock Nest. */

const JSON_BODY = '{"tenant":"acme"}';
const LARGE = JSON.stringify({ tenant: 'a'.repeat(70_000) });

test.each<[string, string, string, string, status: number, seen: unknown[], scopes?: string[]]>([
  ['a guard', 'guarded', JSON_BODY, 'application/json', 201, [[{ tenant: 'acme' }, JSON_BODY]]],
  ['an interceptor', 'audited', JSON_BODY, 'application/json', 201, [[{ tenant: 'acme' }, JSON_BODY]]],
  ['a guard, unreadable', 'guarded', '{', 'application/json', 400, []],
  ['a guard, too large', 'guarded', LARGE, 'application/json', 413, []],
  ['an interceptor, unreadable', 'audited', '{', 'application/json', 201, [[undefined, '{']]],
  ['an interceptor, too large', 'audited', LARGE, 'application/json', 201, [[undefined, undefined]]],
  ['a guard, another type', 'guarded', 'a,b', 'text/csv', 201, [[undefined, undefined]]],
  ['a guard, multipart', 'guarded', '--x--', 'multipart/form-data; boundary=x', 201, [[undefined, undefined]]],
  ['nobody, unreadable', 'plain', '{', 'application/json', 201, []],
  // Their @RequireScopes overrides the @Public of the controller.
  ['a guard behind a missing key', 'closed', JSON_BODY, 'application/json', 401, []],
  ['a guard behind a key without its scope', 'closed', JSON_BODY, 'application/json', 403, [], ['toys:write']],
  ['a guard behind a key', 'closed', '{}', 'application/json', 201, [[{}, '{}']], ['toys:read']],
])('the body before %s', async (...[, path, body, type, status, expected, scopes]) => {
  seen = [];
  const apiKey = scopes === undefined ? null : await app.createApiKey({ scopes });
  const options = { headers: { 'content-type': type }, apiKey };
  const answer = await app.client.post(`/v1/test-logins/${path}`, body, options);
  expect([answer.status, seen]).toEqual([status, expected]);
});

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
  RawBody,
  Scope,
  UploadedFile,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { FileInterceptor } from '@nestjs/platform-express';
import { ApiConsumes } from '@nestjs/swagger';
import express, { type Request } from 'express';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { Int64Parameter, Int64Property, TextProperty } from '#input';
import { Public, RequireScopes } from '#operations';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { rawRequest } from '../support/raw-request.js';
import { until } from '../support/until.js';

/* Bodies that code of modules reads, and those of other media types than application/json, which a handler accepts by @ApiConsumes. */

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

class NewCard {
  @TextProperty({ description: 'A name.', minLength: 1, maxLength: 20 }) name: string;
  @Int64Property({ description: 'A number.', required: false }) number?: bigint;
}

class CardForm {
  @TextProperty({ description: 'A name.', minLength: 1, maxLength: 20 }) name: string;
  @Int64Parameter({ description: 'A number.', required: false }) number?: bigint;
}

const shown = (body: unknown): object =>
  Buffer.isBuffer(body) ? { bytes: body.toString('hex') } : { [typeof body]: body };

const CARDS = new Handlers('test-cards');
CARDS.bodies(
  (card: object) => ({ ...card, isCard: card instanceof CardForm }),
  { form: CardForm },
  ApiConsumes('application/x-www-form-urlencoded'),
);
CARDS.bodies(
  (card: object) => ({ ...card }),
  { patch: NewCard },
  ApiConsumes('application/merge-patch+json; charset=utf-8', 'application/vnd.Cards+json'),
);
CARDS.bodies(shown, { any: Object }, ApiConsumes('*/*'));
CARDS.bodies(shown, { text: String }, ApiConsumes('text/csv', 'application/xml', 'application/json'));
CARDS.bodies(shown, { bytes: Buffer as never }, ApiConsumes('application/json', 'image/*'));
CARDS.bodies(shown, { signed: [RawBody(), Buffer] });
CARDS.bodies(shown, { upload: Object }, ApiConsumes('multipart/form-data'));
CARDS.bodies(
  shown,
  { file: [UploadedFile(), Object] },
  ApiConsumes('multipart/form-data'),
  UseInterceptors(FileInterceptor('file')),
);

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
  controllers: [NOTES.controller, UPLOADS.controller, LOGINS.controller, CARDS.controller, TestSentController],
  providers: [SentNote],
})
class NotesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(express.json()).forRoutes('test-notes');
  }
}

let app: TestApp;
beforeAll(async () => {
  const settings = { REQUEST_TIMEOUT_MS: '500', MAX_BODY_BYTES: '2097152' };
  app = await createTestApp({ features: [NotesModule], settings });
});
afterAll(() => app.close());

const JSON_BODY = '{"tenant":"acme"}';
const LARGE = JSON.stringify({ tenant: 'a'.repeat(2_100_000) });

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
  const MULTIPART = 'multipart/form-data; boundary=x';
  const PART = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nrex';
  const JSON_TYPE = 'application/json';

  function head(path: string, type: string, length: number, ...more: string[]): string {
    const fields = [`Content-Type: ${type}`, `Content-Length: ${length}`, `Authorization: Bearer ${app.apiKey}`];
    return `${[`POST ${path} HTTP/1.1`, 'Host: x', ...fields, ...more].join('\r\n')}\r\n\r\n`;
  }

  const READERS: [reader: string, path: string, type: string, body: string][] = [
    ['multer', '/v1/test-uploads', MULTIPART, `${PART}\r\n--x--\r\n`],
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
    expect(await post(LARGE)).toMatchObject({ status: 413 });
    expect(guarded).toBe(0);
  });
});

/* Guards and interceptors of modules see a JSON body also where the handler takes none, as on stock Nest. */

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

/* Other media types. */

const FORM = 'application/x-www-form-urlencoded';

function send(path: string, type: string, body: string | Buffer, coding?: string): Promise<HttpAnswer> {
  const headers = { 'content-type': type, 'content-encoding': coding };
  return app.client.send('POST', `/v1/test-cards/${path}`, { body, headers });
}

/** Rows of a table whose columns are separated by `|`. */
const table = <Row extends (string | undefined)[]>(text: string): Row[] =>
  text
    .trim()
    .split('\n')
    .map((row) => row.split(' | ') as Row);

test.each(
  table<[title: string, path: string, type: string, body: string, expected: string]>(`
a form, its type in capitals | form | ${FORM.toUpperCase()}; charset=UTF-8 | name=R%C3%A4x+1&number=9223372036854775807&other=2 | {"name":"Räx 1","number":9223372036854775807,"isCard":true}
a type that ends in +json | patch | application/merge-patch+json | {"name":"a","number":9223372036854775807,"x":1} | {"name":"a","number":9223372036854775807}
a type that is declared in capitals | patch | application/vnd.cards+json | {"name":"a"} | {"name":"a"}
a form by type | any | ${FORM} | a=1&d=4&d=5 | {"object":{"a":"1","d":["4","5"]}}
text, its byte order mark dropped | text | text/csv; charset="UTF-8" | \ufeffü | {"string":"ü"}
bytes by type | any | application/pdf | abc | {"bytes":"616263"}
JSON as bytes | bytes | application/json | { } | {"bytes":"7b207d"}
an image as bytes | bytes | image/png | \u0001 | {"bytes":"01"}
`),
)('200: %s', async (_, path, type, body, expected) => {
  const answer = await send(path, type, body);
  expect([answer.status, answer.text]).toEqual([200, expected]);
});

test('413 body_too_large: a form of more than 1 MiB, whatever the limit of bodies', async () => {
  const { status, json } = await send('form', FORM, '+'.repeat(1024 * 1024 + 1));
  expect([status, json]).toMatchObject([413, { message: 'The body must not be larger than 1048576 bytes.' }]);
});

test.each(
  table<[title: string, path: string, type: string, message: string, accept: string, coding?: string]>(`
another type | text | text/plain | Content-Type: text/csv or application/xml | text/csv, application/xml
JSON where a form is taken | form | application/json | Content-Type: ${FORM}. | ${FORM}
another charset | text | text/csv; charset=latin1 | must be UTF-8 | text/csv
a form where nothing is declared | signed | ${FORM} | Content-Type: application/json | application/json
JSON where multer reads | file | application/json | multipart/form-data | multipart/form-data
a content coding | text | text/csv | without a Content-Encoding | identity | gzip
a malformed charset | text | text/csv; charset = latin1 | must be one media type | text/csv
two types | signed | application/json, text/csv | must be one media type | application/json
a charset behind others | text | text/csv; a="b;"; charset=utf-8; charset=x | UTF-8 | text/csv
`),
)('415 unsupported_media_type: %s', async (...[, path, type, message, accept, coding]) => {
  const answer = await send(path, type, 'name=a', coding);
  const code = 'unsupported_media_type';
  expect(answer.json).toMatchObject({ code, status: 415, message: expect.stringContaining(message) as string });
  // RFC 9110, section 12.5.3: a content coding that is named was wrong.
  const { accept: types, 'accept-encoding': codings } = answer.headers;
  expect(types).toContain(coding === undefined ? accept : type);
  expect(codings).toBe(coding === undefined ? undefined : accept);
});

test.each(
  table<[title: string, path: string, type: string, body: string, code: string, message: string]>(`
a form without a member | form | ${FORM} | other=1 | validation_failed | name is required
no text where text is taken | text | text/csv |  | missing_body | needs a body of text/csv or application/xml
JSON with a member twice | patch | application/vnd.cards+json | {"a":1,"a":1} | malformed_json | named twice
`),
)('400: %s', async (_, path, type, body, code, message) => {
  const answer = await send(path, type, body);
  expect(answer.json).toMatchObject({ code, status: 400, message: expect.stringContaining(message) as string });
});

test('a multipart body is left to multer, also where none is bound', async () => {
  const answer = await send('upload', 'multipart/form-data; boundary=x', '--x--\r\n');
  expect([answer.status, answer.json]).toEqual([200, {}]);
});

test('the document names the types that a handler takes, and the errors', async () => {
  const { paths } = (await app.client.get('/openapi.json')).json;
  const contentOf = (path: string): object => paths[`/test-cards/${path}`].post.requestBody.content as object;
  expect(Object.keys(contentOf('patch'))).toEqual([
    'application/merge-patch+json; charset=utf-8',
    'application/vnd.Cards+json',
  ]);
  expect(contentOf('text')).toMatchObject({ 'text/csv': { schema: { type: 'string' } } });
  const { responses } = paths['/test-cards/form'].post;
  const codes = Object.keys(responses[400].content['application/json'].examples as object);
  expect(codes).toEqual(expect.arrayContaining(['bad_request', 'missing_body', 'validation_failed']));
  expect(codes).not.toEqual(expect.arrayContaining(['malformed_json']));
  expect(contentOf('bytes')).toMatchObject({ 'image/*': { schema: { type: 'string', format: 'binary' } } });
});

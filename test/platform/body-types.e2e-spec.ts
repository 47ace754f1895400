import { Module, RawBody, UploadedFile, UseInterceptors } from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { ApiConsumes } from '@nestjs/swagger';
import { Int64Parameter, Int64Property, TextProperty } from '#input';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* Bodies of other media types than application/json, which a handler accepts by @ApiConsumes. */

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

@Module({ controllers: [CARDS.controller] })
class CardsModule {}

let app: TestApp;
beforeAll(
  async () => (app = await createTestApp({ features: [CardsModule], settings: { MAX_BODY_BYTES: '2097152' } })),
);
afterAll(() => app.close());

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
  const { paths } = (await app.client.get('/openapi.json')).json as { paths: Record<string, { post: Operation }> };
  const contentOf = (path: string): object => paths[`/test-cards/${path}`]?.post.requestBody.content ?? {};
  expect(Object.keys(contentOf('patch'))).toEqual([
    'application/merge-patch+json; charset=utf-8',
    'application/vnd.Cards+json',
  ]);
  expect(contentOf('text')).toMatchObject({ 'text/csv': { schema: { type: 'string' } } });
  const { responses } = (paths['/test-cards/form'] as { post: Operation }).post;
  const codes = Object.keys(responses[400]?.content['application/json']?.examples ?? {});
  expect(codes).toEqual(expect.arrayContaining(['bad_request', 'missing_body', 'validation_failed']));
  expect(codes).not.toEqual(expect.arrayContaining(['malformed_json']));
  expect(contentOf('bytes')).toMatchObject({ 'image/*': { schema: { type: 'string', format: 'binary' } } });
});

interface Operation {
  requestBody: { content: object };
  responses: Record<number, { content: Record<string, { examples: object }> }>;
}

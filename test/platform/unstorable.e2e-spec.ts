import { Body, Module, Param, Post, Query, RawBody, Req, UploadedFile, UseInterceptors } from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { ApiConsumes } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsNumber, IsOptional, IsString, ValidateNested } from 'class-validator';
import type { Request } from 'express';
import { Database } from '#postgres';
import { Handlers, type Parameter } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpCall } from '../support/http-client.js';

/*
 * Input that PostgreSQL cannot store is 400, whatever the rules of the module are. It names the member of what the platform checks
 * itself: texts, doubles and dates.
 */

class Detail {
  @IsString() text: string;
}

class Note {
  @IsOptional() @IsString({ each: true }) tags?: string[];
  @IsOptional() @ValidateNested() @Type(() => Detail) detail?: Detail;
  @IsOptional() @Type(() => String) names?: Set<string>;
  @IsOptional() @Type(() => String) labels?: Map<string, string>;
  @IsOptional() meta?: unknown;
  @IsOptional() @IsNumber() size?: number;
  @IsOptional() @Type(() => Date) at?: Date;
  @IsOptional() @Type(() => Number) count?: number;
}

/** Lets PostgreSQL convert a value. */
function store(type: string, value: unknown): Promise<unknown> {
  const text = type === 'divisor' ? 'SELECT 1 / $1::integer' : `SELECT ($1::${type})::text`;
  return write(text, value);
}

function write(text: string, ...values: unknown[]): Promise<unknown> {
  return app.nest.get(Database).write({ name: '', text }, values);
}

const FORM = 'application/x-www-form-urlencoded';
const STORED = new Handlers('test-stored');
const TEXT_OF: Parameter = [Query('text'), String];
const ADD_PET = 'INSERT INTO pet (name, category_id) VALUES ($1, 1) RETURNING char_length(name)';

STORED.bodies((body: unknown) => store('jsonb', JSON.stringify(body)), { notes: Note, any: Object });
STORED.bodies(({ size }: Note) => store('real', size), { sizes: Note });
STORED.bodies(({ text }: Detail) => write(ADD_PET, text), { pets: Detail });
STORED.bodies(({ at }: Note) => write('SELECT extract(epoch FROM $1::timestamptz)::bigint', at), { times: Note });
STORED.bodies((text: unknown) => store('text', text), { member: [Body('text'), Object] });
STORED.bodies(({ body }: { body: Detail }) => store('text', body.text), { request: [Req(), Object] });
STORED.bodies((text: string) => store('text', text), { text: String }, ApiConsumes('text/plain'));
STORED.bodies(({ text }: Detail) => store('text', text), { form: Detail }, ApiConsumes(FORM));
const nameOf = (file: { originalname: string }): unknown => store('text', file.originalname);
STORED.bodies(nameOf, { file: [UploadedFile(), Object] }, UseInterceptors(FileInterceptor('picture')));
STORED.bodies(() => store('text', 'made by the module: \0'), { own: Note });
const ofType = ({ params, body }: Request<{ type: string }, unknown, { value: unknown }>): unknown =>
  store(params.type, body.value);
STORED.bodies(ofType, { 'member/:type': [Req(), Object] });
const BYTES: Parameter[] = [
  [RawBody(), Buffer],
  [Body(), Object],
];
STORED.add(Post('raw'), 'raw', (bytes: Buffer) => store('jsonb', bytes.toString()), { parameters: BYTES });
STORED.get('made', () => store('uuid', 'made by the module'), {}, { parameters: [[Req(), Object]] });
STORED.get('literal', () => write(`SELECT 'x'::uuid`), {}, { parameters: [TEXT_OF] });
STORED.get('query', ({ text }: Detail) => store('text', text), {}, { parameters: [[Query(), Detail]] });
STORED.get('query-all', ({ text }: Detail) => store('text', text), {}, { parameters: [[Query(), Object]] });
STORED.get('query-one', (text: string) => store('text', text), {}, { parameters: [TEXT_OF] });
STORED.get('ids/:id', (id: string) => store('integer', id), {}, { parameters: [[Param('id'), String]] });

@Module({ controllers: [STORED.controller] })
class StoredModule {}

let app: TestApp;
beforeAll(async () => (app = await createTestApp({ features: [StoredModule] })));
afterAll(() => app.close());

const TEXT = 'must not contain NUL, unpaired surrogates or bytes that are not UTF-8';
const REFUSED = '400 validation_failed: A value of the request cannot be stored.';

async function ask(method: string, path: string, call: HttpCall = {}): Promise<string> {
  const sent = app.client.send(method, `/v1/test-stored/${path}`, { ...call, expects500: true });
  const { status, json, text } = await sent;
  return status === 200 ? `200 ${text}` : `${status} ${json.code}: ${json.message}`;
}
const post = (path: string, body: unknown, type = 'application/json'): Promise<string> =>
  ask('POST', path, { body, headers: { 'content-type': type } });
const get = (path: string): Promise<string> => ask('GET', path);

describe.each(['a\\u0000b', 'a\\udc15'])('the text "%s"', (text) => {
  const invalid = (name: string): string => `400 validation_failed: ${name} ${TEXT}`;

  test.each([
    ['behind @IsString of each item', 'notes', `{"tags":["b","${text}"]}`, 'tags.1'],
    ['in a nested class', 'notes', `{"detail":{"text":"${text}"}}`, 'detail.text'],
    ['in a Set', 'notes', `{"names":["b","${text}"]}`, 'names.1'],
    ['in a Map', 'notes', `{"labels":{"a":"${text}"}}`, 'labels.a'],
    ['in a member without a rule', 'notes', `{"meta":{"a":[{"b":"${text}"}]}}`, 'meta.a.0.b'],
    ['as the name of a member', 'notes', `{"meta":{"a":{"${text}":1}}}`, 'the names of members of meta.a'],
    ['in a body of any type', 'any', `["${text}"]`, '0'],
    ["in @Body('member')", 'member', `{"text":"${text}"}`, 'text'],
    ['in a body that @Req() reads', 'request', `{"text":"${text}"}`, 'text'],
    ['in a body whose bytes are stored', 'raw', `{"b":"${text}"}`, 'b'],
  ])('400: %s', async (_, path, body, name) => {
    expect(await post(path, body)).toBe(invalid(name));
  });

  test('is ignored in a member that no handler gets', async () => {
    expect(await post('notes', `{"other":"${text}","tags":[]}`)).toBe('200 [["{\\"tags\\": []}"]]');
    const pet = `{"name":"Rex","categoryId":1,"other":"${text}","${text}":1}`;
    expect((await app.client.post('/v1/pets', pet)).status).toBe(201);
  });
});

describe.each(['a%00b', '%ed%a0%80'])('the text "%s" of a query or form', (text) => {
  test.each(['query', 'query-all', 'query-one'])('400: %s', async (path) => {
    expect(await get(`${path}?text=${text}`)).toBe(`400 invalid_parameter: text ${TEXT}`);
  });

  test('400: a form', async () => {
    expect(await post('form', `text=${text}`, FORM)).toBe(`400 validation_failed: text ${TEXT}`);
  });

  test('is ignored where no handler gets it, and is no cursor', async () => {
    const { json } = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 1 });
    expect((await app.client.get(`/v1/pets/${json.id}?x=${text}`)).status).toBe(200);
    expect((await app.client.get(`/v1/pets?cursor=${text}`)).json.code).toBe('invalid_cursor');
  });
});

test('whole texts are stored', async () => {
  expect(await post('any', '["\\ud83d\\udc15 \\ufffd"]')).toBe('200 [["[\\"🐕 \ufffd\\"]"]]');
  expect(await get('query-one?text=%F0%9F%90%95+%EF%BF%BD')).toBe('200 [["🐕 \ufffd"]]');
  expect(await post('text', 'ä', 'text/plain')).toBe('200 [["ä"]]');
});

test('400: bytes that are no text', async () => {
  expect(await post('text', Buffer.of(0x61, 0xff), 'text/plain')).toBe('400 validation_failed: the body must be UTF-8');
  expect(await post('text', 'a\0', 'text/plain')).toBe(`400 validation_failed: the input ${TEXT}`);
});

test('400: a number that its column cannot hold', async () => {
  expect(await post('sizes', '{"size":1e40}')).toBe(REFUSED);
  expect(await post('sizes', '{"size":1e30}')).toBe('200 [["1e+30"]]');
});

test.each([
  ['22001', 'pets', { text: 'a'.repeat(256) }],
  ['22003', 'member/numeric(5,2)', { value: '1000' }],
  ['22007', 'member/date', { value: 'x' }],
  ['22008', 'member/timestamptz', { value: '2026-13-01' }],
  ['22015', 'member/interval', { value: '99999999999 years' }],
  ['22009', 'member/timestamptz', { value: '2026-01-01 00:00+99' }],
  ['22021', 'own', {}],
  ['22P02', 'member/uuid', { value: 'a"b' }],
  ['22P05', 'member/jsonb', { value: String.raw`"\u0000"` }],
])('400 without a member: a value that PostgreSQL refuses by %s, %s %j', async (_, path, body) => {
  expect(await post(path, JSON.stringify(body))).toBe(REFUSED);
});

test('operators are told, at most once a second', () => {
  const warnings = app.log.lines.filter(({ level }) => level === 40).map(({ msg }) => msg);
  expect(warnings).toContainEqual(
    expect.stringMatching(/^PostgreSQL refused a value in \w+ \(22\w{3}\): of the request, or of the module$/),
  );
});

test('400 of a value in a path or a query; 500 without input, without parameters, and by another code', async () => {
  expect(await get('ids/x')).toBe(REFUSED);
  expect(await get('ids/a%00b')).toBe(REFUSED);
  expect(await get('ids/7')).toBe('200 [["7"]]');
  expect(await get('made?text=a')).toBe(REFUSED);
  expect(await get('made')).toMatch(/^500 internal_error/);
  expect(await get('literal?text=a')).toMatch(/^500 internal_error/);
  expect(await post('member/divisor', '{"value":0}')).toMatch(/^500 internal_error/);
});

test.each(['{"at":"x"}', '{"at":8640000000000001}', '{"at":-8640000000000000}', '{"meta":1,"at":-210866803200001}'])(
  '400: a date that PostgreSQL cannot store, behind @Type: %s',
  async (body) => {
    expect(await post('notes', body)).toBe('400 validation_failed: at must be a date from 4713 BC on');
  },
);

test('400: a number that is none, behind @Type; the first and last date are stored', async () => {
  expect(await post('notes', '{"count":"x"}')).toMatch(/^400 .*: count must be a number that a double can hold$/);
  // pg writes dates with the offset of the process's time zone, without the seconds that offsets of that time have.
  expect(await post('times', '{"at":-210866716800000}')).toMatch(/^200 \[\["-21086671(67|68)\d\d"\]\]$/);
  expect(await post('times', '{"at":8640000000000000}')).toBe('200 [["8640000000000"]]');
});

test('400: the name of a file', async () => {
  const upload = (name: string): Promise<string> =>
    post(
      'file',
      `--b\r\nContent-Disposition: form-data; name="picture"; ${name}\r\nContent-Type: image/png\r\n\r\nx\r\n--b--\r\n`,
      'multipart/form-data; boundary=b',
    );
  expect(await upload('filename="a.png"')).toBe('200 [["a.png"]]');
  expect(await upload("filename*=UTF-8''a%00b.png")).toBe(REFUSED);
});

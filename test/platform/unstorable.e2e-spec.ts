import {
  Body,
  Controller,
  Get,
  HttpCode,
  Module,
  Param,
  Post,
  Query,
  RawBody,
  Req,
  UploadedFile,
  UseInterceptors,
} from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { ApiConsumes } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsNumber, IsOptional, IsString, ValidateNested } from 'class-validator';
import type { Request } from 'express';
import { Public } from '#operations';
import { Database } from '#postgres';
import { CreateVisit1795300000000 } from '../example/visits/1795300000000-create-visit.js';
import { VisitsModule } from '../example/visits/visits.module.js';
import { createTestApp, type TestApp } from '../support/app.js';

/*
 * Input that PostgreSQL cannot store is 400, whatever the rules of the module are. It names the member of what the platform checks
 * itself: texts, doubles and dates.
 */

class Detail {
  @IsString()
  text: string;
}

class Note {
  @IsOptional()
  @IsString({ each: true })
  tags?: string[];

  @IsOptional()
  @ValidateNested()
  @Type(() => Detail)
  detail?: Detail;

  @IsOptional()
  @Type(() => String)
  names?: Set<string>;

  @IsOptional()
  @Type(() => String)
  labels?: Map<string, string>;

  @IsOptional()
  meta?: unknown;

  @IsOptional()
  @IsNumber()
  size?: number;

  @IsOptional()
  @Type(() => Date)
  at?: Date;

  @IsOptional()
  @Type(() => Number)
  count?: number;
}

class NoteQuery {
  @IsString()
  text: string;
}

@Public()
@Controller('test-stored')
class TestStoredController {
  constructor(private readonly database: Database) {}

  @Post('notes')
  @HttpCode(200)
  addNote(@Body() note: Note): Promise<unknown> {
    return this.store('jsonb', JSON.stringify(note));
  }

  @Post('sizes')
  @HttpCode(200)
  addSize(@Body() { size }: Note): Promise<unknown> {
    return this.store('real', size);
  }

  @Post('reasons')
  @HttpCode(200)
  addReason(@Body() { text }: Detail): Promise<unknown> {
    const statement = 'INSERT INTO visit (pet_id, reason, weight_kg) VALUES (1, $1, 1) RETURNING char_length(reason)';
    return this.database.write({ name: '', text: statement }, [text]);
  }

  @Post('times')
  @HttpCode(200)
  addTime(@Body() { at }: Note): Promise<unknown> {
    return this.database.write({ name: '', text: `SELECT extract(epoch FROM $1::timestamptz)::bigint` }, [at]);
  }

  @Post('any')
  @HttpCode(200)
  addAny(@Body() body: unknown): Promise<unknown> {
    return this.store('jsonb', JSON.stringify(body));
  }

  @Post('member')
  @HttpCode(200)
  addMember(@Body('text') text: unknown): Promise<unknown> {
    return this.store('text', text);
  }

  @Post('member/:type')
  @HttpCode(200)
  addMemberOf(@Param('type') type: string, @Body() { value }: { value: unknown; other?: unknown }): Promise<unknown> {
    return this.store(type, value);
  }

  @Post('request')
  @HttpCode(200)
  addRequest(@Req() { body }: Request): Promise<unknown> {
    return this.store('text', (body as { text: unknown }).text);
  }

  @Post('raw')
  @HttpCode(200)
  addRaw(@RawBody() bytes: Buffer, @Body() body: { kind: unknown }): Promise<unknown> {
    return this.store('jsonb', body.kind === 'raw' ? bytes.toString() : bytes.toString('hex'));
  }

  @Post('text')
  @HttpCode(200)
  @ApiConsumes('text/plain')
  addText(@Body() text: string): Promise<unknown> {
    return this.store('text', text);
  }

  @Post('form')
  @HttpCode(200)
  @ApiConsumes('application/x-www-form-urlencoded')
  addForm(@Body() form: Detail): Promise<unknown> {
    return this.store('text', form.text);
  }

  @Post('file')
  @HttpCode(200)
  @UseInterceptors(FileInterceptor('picture', { limits: { fileSize: 1_000 } }))
  addFile(@UploadedFile() { originalname }: { originalname: string }): Promise<unknown> {
    return this.store('text', originalname);
  }

  @Get('made')
  findMade(@Req() _: Request): Promise<unknown> {
    return this.store('uuid', 'made by the module');
  }

  @Get('literal')
  findLiteral(@Query('text') _: string): Promise<unknown> {
    return this.database.read({ name: '', text: `SELECT 'x'::uuid` }, []);
  }

  @Get('query')
  find(@Query() { text }: NoteQuery): Promise<unknown> {
    return this.store('text', text);
  }

  @Get('query-all')
  findAll(@Query() query: Record<string, string>): Promise<unknown> {
    return this.store('text', query['text']);
  }

  @Get('query-one')
  findOne(@Query('text') text: string): Promise<unknown> {
    return this.store('text', text);
  }

  @Get('ids/:id')
  findId(@Param('id') id: string): Promise<unknown> {
    return this.store('integer', id);
  }

  @Post('own')
  async own(@Body() _: Note): Promise<unknown> {
    return this.store('text', 'made by the module: \0');
  }

  private store(type: string, value: unknown): Promise<unknown> {
    const text = type === 'divisor' ? 'SELECT 1 / $1::integer' : `SELECT ($1::${type})::text`;
    return this.database.write({ name: '', text }, [value as string]);
  }
}

@Module({ controllers: [TestStoredController] })
class StoredModule {}

let app: TestApp;
let apiKey: string;
beforeAll(async () => {
  app = await createTestApp({ features: [StoredModule, VisitsModule] });
  await app.migrate(new CreateVisit1795300000000());
  apiKey = await app.createApiKey('visits:read', 'visits:write');
});
afterAll(() => app.close());

const TEXT = 'must not contain NUL, unpaired surrogates or bytes that are not UTF-8';
const REFUSED = '400 validation_failed: A value of the request cannot be stored.';

async function post(path: string, body: string, type = 'application/json'): Promise<string> {
  const { status, json, text } = await app.client.post(`/v1/test-stored/${path}`, body, {
    headers: { 'content-type': type },
    expects500: true,
  });
  return status === 200 ? `200 ${text}` : `${status} ${json.code}: ${json.message}`;
}

async function get(path: string): Promise<string> {
  const { status, json, text } = await app.client.get(`/v1/test-stored/${path}`, { expects500: true });
  return status === 200 ? `200 ${text}` : `${status} ${json.code}: ${json.message}`;
}

describe.each(['a\\u0000b', 'a\\ud83db', 'a\\udc15'])('the text "%s"', (text) => {
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
    ['in a body whose bytes are stored', 'raw', `{"kind":"raw","b":"${text}"}`, 'b'],
  ])('400: %s', async (_, path, body, name) => {
    expect(await post(path, body)).toBe(invalid(name));
  });

  test('is ignored in a member that no handler gets', async () => {
    expect(await post('notes', `{"other":"${text}","tags":[]}`)).toBe('200 [["{\\"tags\\": []}"]]');
    const pet = `{"name":"Rex","categoryId":1,"other":"${text}","${text}":1}`;
    expect((await app.client.post('/v1/pets', pet)).status).toBe(201);
  });
});

describe.each(['a%00b', 'a%ffb', '%ed%a0%80', '%C3'])('the text "%s" of a query or form', (text) => {
  test.each(['query', 'query-all', 'query-one'])('400: %s', async (path) => {
    expect(await get(`${path}?text=${text}`)).toBe(`400 invalid_parameter: text ${TEXT}`);
  });

  test('400: a form', async () => {
    expect(await post('form', `text=${text}`, 'application/x-www-form-urlencoded')).toBe(
      `400 validation_failed: text ${TEXT}`,
    );
  });

  test("400: the guide's sample", async () => {
    const { status, json } = await app.client.get(`/v1/visits?reason=${text}`, { apiKey });
    expect([status, json.message]).toEqual([400, 'reason must be a string without NUL or unpaired surrogates']);
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
  const { status, json } = await app.client.post('/v1/test-stored/text', Buffer.of(0x61, 0xff), {
    headers: { 'content-type': 'text/plain' },
  });
  expect([status, json.code, json.message]).toEqual([400, 'validation_failed', 'the body must be UTF-8']);
  expect(await post('text', 'a\0', 'text/plain')).toBe(`400 validation_failed: the input ${TEXT}`);
});

test("400: a number that its column cannot hold, and the guide's sample stores what it answers", async () => {
  expect(await post('sizes', '{"size":1e40}')).toBe(REFUSED);
  expect(await post('sizes', '{"size":1e30}')).toBe('200 [["1e+30"]]');
  const visit = (weightKg: string): Promise<{ status: number; json: any }> =>
    app.client.post('/v1/visits', `{"petId":1,"reason":"ill","weightKg":${weightKg}}`, { apiKey });
  expect(await visit('1e40')).toMatchObject({ status: 201, json: { weightKg: 1e40 } });
  expect(await visit('1e400')).toMatchObject({
    status: 400,
    json: { message: 'weightKg must be a number that a double can hold' },
  });
});

test.each([
  ['22001', 'reasons', { text: 'a'.repeat(201) }],
  ['22003', 'member/numeric(5,2)', { value: '1000' }],
  ['22003', 'member/integer', { value: 3_000_000_000 }],
  ['22007', 'member/date', { value: 'x' }],
  ['22008', 'member/timestamptz', { value: '2026-13-01' }],
  ['22015', 'member/interval', { value: '99999999999 years' }],
  ['22009', 'member/timestamptz', { value: '2026-01-01 00:00+99' }],
  ['22021', 'own', {}],
  ['22P02', 'member/uuid', { value: 'a"b' }],
  ['22P02', 'member/integer', { value: '' }],
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

test('400: a number with too many digits', async () => {
  const price = (value: unknown): Promise<string> => post('member/numeric(5,2)', JSON.stringify({ other: 7, value }));
  expect(await price(-999.994)).toBe('200 [["-999.99"]]');
  for (const value of [-999.996, 1e40, '1000']) expect(await price(value)).toBe(REFUSED);
});

test.each(['{"at":"x"}', '{"at":8640000000000001}', '{"at":-8640000000000000}', '{"meta":1,"at":-210866803200001}'])(
  '400: a date that PostgreSQL cannot store, behind @Type: %s',
  async (body) => {
    expect(await post('notes', body)).toBe('400 validation_failed: at must be a date from 4713 BC on');
  },
);

test('400: a number that is none, behind @Type; the first and last date are stored', async () => {
  expect(await post('notes', '{"count":"x"}')).toBe(
    '400 validation_failed: count must be a number that a double can hold',
  );
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

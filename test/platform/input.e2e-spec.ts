import {
  type ArgumentsHost,
  Body,
  Catch,
  type ExceptionFilter,
  type HttpServer,
  type INestApplication,
  Module,
  type NestInterceptor,
  Param,
  Query,
  Req,
  UseInterceptors,
} from '@nestjs/common';
import { ApiProperty, PartialType, PickType } from '@nestjs/swagger';
import { Expose, Transform, Type } from 'class-transformer';
import { ArrayMaxSize, IsArray, IsEmail, IsInt, IsOptional, IsString, Min, ValidateNested } from 'class-validator';
import type { Request, Response } from 'express';
import { readFileSync } from 'node:fs';
import {
  ApiError,
  BodyLimits,
  BooleanProperty,
  EnumProperty,
  type Fault,
  FaultDetails,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  OpaqueParameter,
  TextProperty,
} from '#platform';
import { Card, Payment, PAYMENTS } from '../ordinary-nest/body-values.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/*
 * What the decorators of the platform accept and refuse, alone and beside class-validator, and the faults that they report.
 * `ordinary-nest/body-values` compares all else with stock Nest.
 */

const LARGEST = '9223372036854775807';
const described = { description: 'Something.' };
const optional = { ...described, required: false };

const COLOUR = { enum: ['red', 'blue'], enumName: 'ToyPaint', enumSchema: { description: 'A colour.' } };
const SIZE = { enum: ['small', 'large', 'huge'], enumName: 'ToySize', enumSchema: { description: 'A size.' } };
const list = { description: 'A list.', required: false, isArray: true, maxItems: 2 } as const;

class Toy {
  @TextProperty({ ...list, minItems: 1, uniqueItems: true, minLength: 1, maxLength: 5, example: ['new'] })
  tags?: string[];

  @Int64Property({ ...list, maxItems: 9 }) ids?: bigint[];
  @IntegerProperty({ ...list, minimum: 0, maximum: 9 }) counts?: number[];
  @EnumProperty({ ...list, ...COLOUR }) colours?: string[];
  @TextProperty({ ...optional, nullable: true, minLength: 1, maxLength: 5, notBlank: true }) note?: string | null;
  @Int64Property(optional) id?: bigint;
  @IntegerProperty({ ...optional, minimum: -1, maximum: 9 }) quantity?: number;
  @BooleanProperty(optional) isOpen?: boolean;
  @EnumProperty({ ...optional, ...COLOUR }) colour?: string;
}

/** The same rules, but class-transformer reads the class and class-validator checks it. */
class MixedToy extends Toy {
  @IsOptional()
  @IsString()
  word?: string;
}

class NamedToy {
  @TextProperty({ ...described, minLength: 2, maxLength: 9 }) name: string;
}

class Line {
  @Min(1, { message: 'Take at least one.', context: { translation: 'too-few', checked: true } })
  @IsInt()
  count: number;

  @Int64Property(described) productId: bigint;
}

class Order extends PartialType(Toy) {
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(2)
  @ValidateNested({ each: true })
  @Type(() => Line)
  lines?: Line[];

  @IsOptional()
  @ValidateNested({ each: true })
  @Type(() => Payment, PAYMENTS)
  payments?: Payment[];

  @Int64Property(optional)
  @Expose({ name: 'customer_id' })
  customerId?: bigint;

  @IsOptional()
  @IsEmail()
  email?: string;
}

class OrderChange extends PartialType(PickType(Order, ['ids', 'lines'] as const)) {}

class DistinctIds {
  // Acts before the decorator below it.
  @Transform(({ value }: { value: number[] }) => [...new Set(value)])
  @Int64Property({ ...list, maxItems: 9 })
  ids: bigint[];
}

class ToysQuery {
  @TextProperty({ ...list, minLength: 1, maxLength: 5 }) tag?: string[];
  @EnumProperty({ ...list, ...COLOUR }) colour?: string[];
  @Int64Parameter(list) id?: bigint[];
  @IntegerParameter({ ...list, minimum: 0, maximum: 9 }) count?: number[];
  @Int64Parameter(optional) makerId?: bigint;
  @OpaqueParameter({ description: 'Old.', required: false, deprecated: true }) word?: string;
  @EnumProperty({ description: 'The size.', required: false, deprecated: true, ...SIZE }) size?: string;
}

class MixedQuery extends ToysQuery {
  @IsOptional()
  @IsString()
  more?: string;
}

/** With members whose document alone is of interest. */
class DescribedToy extends Toy {
  @EnumProperty({ description: 'The size.', required: false, ...SIZE }) size?: string;
  @TextProperty({ description: 'Old.', required: false, deprecated: true, minLength: 0, maxLength: 9 }) word?: string;
  @ApiProperty({ description: 'Older.', required: false, deprecated: true }) remark?: string;
  @BooleanProperty({ description: 'Whether it squeaks.', required: false }) squeaks = false;
  @TextProperty({ description: 'A maker.', nullable: true, minLength: 0, maxLength: 40 }) maker: string | null;
}

class ToyPath {
  @Int64Parameter(described) toyId: bigint;
}

class Formats {}
for (const [name, options] of Object.entries<Partial<Parameters<typeof TextProperty>[0]>>({
  price: { format: 'decimal', pattern: '^[0-9]{1,3}([.][0-9]{1,2})?$' },
  day: { format: 'date' },
  at: { format: 'date-time' },
  email: { format: 'email' },
  page: { format: 'uri', maxLength: 30 },
  uuid: { format: 'uuid', nullable: true },
  code: { minLength: 2, maxLength: 9, pattern: '^[A-Z]+$' },
  days: { ...list, format: 'date' },
}))
  TextProperty({ ...optional, ...options } as Parameters<typeof TextProperty>[0])(Formats.prototype, name);

class OpaqueQuery {
  @OpaqueParameter({ ...optional, maxLength: 5, pattern: '^[a-z]*$' }) prefix?: string;
}

/** The same members without classes, because only declared members of a class are sent. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, plain(member)]);
  return { ...Object.fromEntries(members), ...(value instanceof Card ? { isCard: true } : {}) };
}

/** Changes the body itself, as the query says. */
const changing: NestInterceptor = {
  intercept(execution, next) {
    const { body, query } = execution.switchToHttp().getRequest<Request<object, unknown, { ids?: number[] }>>();
    if (query['ids'] === 'reverse' || query['ids'] === 'shift') body.ids?.[query['ids']]();
    else Object.assign(body, { customer_id: 7, quantity: 7 });
    return next.handle();
  },
};

const TOYS = new Handlers('test-toys');
TOYS.bodies(plain, {
  toys: Toy,
  mixed: MixedToy,
  named: NamedToy,
  orders: Order,
  changes: OrderChange,
  distinct: DistinctIds,
  wrapped: [Body('toy'), Toy],
  'wrapped-order': [Body('order'), Order],
  any: Object,
  described: DescribedToy,
});
TOYS.bodies(plain, { 'changed-toys': Toy, 'changed-orders': Order }, UseInterceptors(changing));
TOYS.bodies(plain, { bulk: Object }, BodyLimits({ values: 30_000, levels: 50 }));
TOYS.bodies(plain, { long: Object }, BodyLimits({ bytes: 100_000 }));
TOYS.bodies(plain, { formats: Formats });
TOYS.get('found-by', plain, {}, { parameters: [[Query(), OpaqueQuery]] });
TOYS.bodies(({ body }: Request) => body, { raw: [Req(), Object] });
TOYS.bodies(() => undefined, { 'detailed-raw': [Req(), Object] }, FaultDetails());
TOYS.get('listed', plain, {}, { parameters: [[Query(), ToysQuery]] });
TOYS.get('listed-mixed', plain, {}, { parameters: [[Query(), MixedQuery]] });
TOYS.get('found/:toyId', plain, {}, { parameters: [[Param(), ToyPath]] });

const DETAILED = new Handlers('test-detailed');
DETAILED.bodies(() => undefined, { toys: Toy, orders: Order });
FaultDetails()(DETAILED.controller);

@Module({ controllers: [TOYS.controller, DETAILED.controller] })
class ToysModule {}

let seen: readonly Fault[] = [];

@Catch(ApiError)
class FaultsFilter implements ExceptionFilter<ApiError> {
  constructor(private readonly adapter: HttpServer) {}

  catch(error: ApiError, host: ArgumentsHost): void {
    seen = error.faults;
    this.adapter.reply(host.switchToHttp().getResponse<Response>(), error.getResponse(), error.getStatus());
  }
}

let app: TestApp;
let filtered: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [ToysModule] });
  const setUp = (nest: INestApplication): void => void nest.useGlobalFilters(new FaultsFilter(nest.getHttpAdapter()));
  filtered = await createTestApp({ features: [ToysModule], setUp });
});
afterAll(async () => {
  await app.close();
  await filtered.close();
});

/** The text of a 200, or the message of an error. */
async function post(path: string, body: string): Promise<string> {
  const answer = await app.client.post(`/v1/test-toys/${path}`, body, { expects500: true });
  return answer.status === 200 ? answer.text : `${answer.status} ${answer.json.message}`;
}

/** The faults of a refused request, as `property rule`. */
async function faultsOf(path: string, body?: unknown, code?: string): Promise<string[]> {
  seen = [];
  const call = { body };
  const { json } = await filtered.client.send(body === undefined ? 'GET' : 'POST', `/v1/test-toys/${path}`, call);
  const message = seen.map((fault) => fault.message).join('; ');
  expect(json).toEqual({ code: code ?? expect.any(String), message, status: 400 });
  return seen.map(({ property, rule }) => `${property} ${rule}`);
}

const TEXT = 'null or a string of 1 to 5 characters, not blank, without NUL or unpaired surrogates';
const INT64 = 'an integer between -9223372036854775808 and 9223372036854775807';
const TAGS = 'an array of 1 to 2 items, all of them different';

describe.each(['toys', 'mixed'])('members of a body: %s', (path) => {
  test.each([
    ['{"note":null}'],
    ['{"note":"🐕🐕🐕🐕🐕"}'],
    ['{"note":" a "}'],
    [`{"id":${LARGEST},"quantity":-1,"isOpen":false,"colour":"red"}`],
    ['{"tags":["a","b"],"ids":[9007199254740993,-1],"counts":[1,9],"colours":["red","red"]}'],
    // Undeclared members are dropped, and zero has no sign.
    ['{"id":-0,"other":1}', '{"id":0}'],
  ])('200: %s', async (body, expected = body) => {
    expect(await post(path, body)).toBe(expected);
  });

  test.each([
    ['{"note":""}', 'note minLength', TEXT],
    ['{"note":"sixsix"}', 'note maxLength', TEXT],
    ['{"note":"twice as long"}', 'note maxLength', TEXT],
    ['{"note":"\\t \u00a0"}', 'note pattern', TEXT],
    ['{"note":"a\\u0000"}', 'note pattern', TEXT],
    ['{"note":"\\ud83d"}', 'note pattern', TEXT],
    ['{"note":1}', 'note type', TEXT],
    ['{"id":null}', 'id type', INT64],
    ['{"id":1.5}', 'id type', INT64],
    ['{"id":9223372036854775808}', 'id format', INT64],
    ['{"id":"1"}', 'id type', `${INT64}, sent as a JSON number, not a string`],
    ['{"quantity":-2}', 'quantity minimum', 'an integer between -1 and 9'],
    ['{"quantity":10}', 'quantity maximum', 'an integer between -1 and 9'],
    ['{"isOpen":"true"}', 'isOpen type', 'true or false, not a string'],
    ['{"colour":"Red"}', 'colour enum', 'one of red, blue'],
    ['{"tags":"a"}', 'tags type', TAGS],
    ['{"tags":{"0":"a"}}', 'tags type', TAGS],
    ['{"tags":[]}', 'tags minItems', TAGS],
    ['{"tags":["a","b","c"]}', 'tags maxItems', TAGS],
    ['{"tags":["a","a"]}', 'tags uniqueItems', TAGS],
    ['{"tags":[7]}', 'tags.0 type', 'a string of 1 to 5 characters without NUL or unpaired surrogates'],
    ['{"ids":[1,2,3,4,5,6,7,8,9,10]}', 'ids maxItems', 'an array of 0 to 9 items'],
    ['{"ids":[1,1.5]}', 'ids.1 type', INT64],
    ['{"counts":["1"]}', 'counts.0 type', 'an integer between 0 and 9, sent as a JSON number, not a string'],
    ['{"colours":["red","green"]}', 'colours.1 enum', 'one of red, blue'],
    ['{"colours":null}', 'colours type', 'an array of 0 to 2 items'],
  ])('400: %s', async (body, fault, clause) => {
    expect(await faultsOf(path, body, 'validation_failed')).toEqual([fault]);
    expect(seen[0]?.message).toBe(`${fault.split(' ')[0]} must be ${clause}`);
  });
});

describe.each(['listed', 'listed-mixed'])('lists in a query: %s', (path) => {
  test.each([
    ['tag=a', { tag: ['a'] }],
    ['tag=a&tag=b', { tag: ['a', 'b'] }],
    ['id=9007199254740993&count=1&count=2&colour=red', { id: [9007199254740993n], count: [1, 2], colour: ['red'] }],
  ])('200: %s', async (query, expected) => {
    const { status, json } = await app.client.get(`/v1/test-toys/${path}?${query}`);
    expect([status, json]).toEqual([200, expected]);
  });

  test.each([
    ['tag=a&tag=b&tag=c', 'tag maxItems', 'an array of 0 to 2 items'],
    ['id=1&id=x', 'id.1 type', INT64],
    ['colour=green', 'colour.0 enum', 'one of red, blue'],
  ])('400: %s', async (query, fault, clause) => {
    expect(await faultsOf(`${path}?${query}`, undefined, 'invalid_parameter')).toEqual([fault]);
    expect(seen[0]?.message).toBe(`${fault.split(' ')[0]} must be ${clause}`);
  });
});

describe('faults', () => {
  // Of rules of class-validator there is one for each property, first that about the type.
  test.each<[path: string, body: unknown, faults: string]>([
    ['toys', { note: '', tags: [''], quantity: 10 }, 'tags.0 minLength, note minLength, quantity maximum'],
    ['named', {}, 'name required'],
    ['wrapped', { toy: { tags: ['', 'a'] } }, 'toy.tags.0 minLength'],
    ['wrapped', { toy: 7 }, 'toy type'],
    [
      'wrapped-order',
      { order: { lines: [{}], colour: 'no' } },
      'order.lines.0.count isInt, order.lines.0.productId required, order.colour enum',
    ],
    ['toys', [], ' type'],
    ['listed?makerId=x&weight=7', undefined, 'weight additionalProperties'],
    ['listed?makerId=1&makerId=2', undefined, 'makerId type'],
    ['found/x', undefined, 'toyId type'],
    ['raw', { a: [{ b: 'x\0' }] }, 'a.0.b storable'],
    ['orders', { lines: {}, email: 7 }, 'lines isArray, email isEmail'],
    ['orders', { lines: [7] }, 'lines.0 nestedValidation'],
    [
      'orders',
      { lines: [{ count: 'x', productId: 1 }, { count: 0, productId: '1' }, 5] },
      'lines arrayMaxSize, lines.0.count isInt, lines.1.count min, lines.1.productId type, lines.2 nestedValidation',
    ],
  ])('of %s with %j', async (path, body, faults) => {
    expect((await faultsOf(path, body)).join(', ')).toBe(faults);
  });

  test('of rules of class-validator have their contexts', async () => {
    const line = { count: 0, productId: 1 };
    await faultsOf('orders', { lines: [{ count: 'x', productId: 1 }, line] });
    expect(seen[1]).toEqual({
      property: 'lines.1.count',
      rule: 'min',
      message: 'lines.1.Take at least one.',
      context: { translation: 'too-few', checked: true },
    });
    expect(Object.keys(seen[0] as Fault)).toEqual(['property', 'rule', 'message']);
  });

  test('an error without faults has an empty list', async () => {
    seen = [{ property: '', rule: '', message: '' }];
    await filtered.client.get('/v1/pets/7');
    expect(seen).toEqual([]);
  });
});

describe('@FaultDetails', () => {
  test('sends the faults as details, also through a filter that responds with the Error body', async () => {
    for (const { client } of [app, filtered]) {
      const detailsOf = async (path: string, body: object): Promise<unknown> =>
        (await client.post(`/v1/${path}`, body)).json.details;
      const fault = { property: 'note', rule: 'maxLength', message: `note must be ${TEXT}` };
      expect(await detailsOf('test-detailed/toys', { note: 'too long' })).toEqual([fault]);
      const context = { translation: 'too-few' };
      const lines = [{ count: 0, productId: 1 }];
      expect(await detailsOf('test-detailed/orders', { lines })).toMatchObject([
        { property: 'lines.0.count', context },
      ]);
      expect(await detailsOf('test-toys/detailed-raw', { a: '\0' })).toMatchObject([
        { property: 'a', rule: 'storable' },
      ]);
    }
  });

  test('leaves errors without faults, and all other operations, as they are', async () => {
    for (const [path, body] of [
      ['test-detailed/toys', '{'],
      ['test-toys/toys', { note: 'too long' }],
      ['pets', { name: '' }],
    ] as const) {
      const { json } = await app.client.post(`/v1/${path}`, body);
      expect(Object.keys(json as object)).toEqual(['code', 'message', 'status']);
    }
  });

  test('is documented for its operations alone', async () => {
    const document = (await app.client.get('/openapi.json')).json;
    const details = { type: 'array', items: { $ref: '#/components/schemas/ErrorFault' } };
    expect(document.paths['/test-detailed/toys'].post.responses).toMatchObject({
      400: { content: { 'application/json': { schema: { allOf: [{}, { properties: { details } }] } } } },
    });
    expect(document.components.schemas).toHaveProperty('ErrorFault.required', ['property', 'rule', 'message']);
    expect(JSON.stringify(document).match(/schemas\/ErrorFault"/g)).toHaveLength(2);
    const own = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8');
    expect(own).not.toContain('ErrorFault');
  });
});

describe('declared int64', () => {
  test.each([
    [
      'an array',
      '{"ids":[9007199254740993,-9223372036854775808,1.0,1e2,-0,9223372036854775807.000]}',
      `{"ids":[9007199254740993,-9223372036854775808,1,100,0,${LARGEST}]}`,
    ],
    ['a member of an array', `{"lines":[{"count":1,"productId":1},{"count":1,"productId":${LARGEST}}]}`],
    ['another name than in JSON', `{"customer_id":${LARGEST}}`, `{"customerId":${LARGEST}}`],
    [
      'a member of a discriminated class',
      `{"payments":[{"type":"card","number":1,"cvc":100,"account":${LARGEST}}]}`,
      `{"payments":[{"type":"card","number":1,"cvc":100,"account":${LARGEST},"isCard":true}]}`,
    ],
    ['an escaped name', '{"\\u0069ds":[9007199254740993]}', '{"ids":[9007199254740993]}'],
    ['a small integer however it is spelled', '{"quantity":0.9e1}', '{"quantity":9}'],
  ])('is exact: %s', async (_, body, expected = body) => {
    expect(await post('orders', body)).toBe(expected);
  });

  test('is exact in mapped types, in a class with decorators of the platform alone, and behind a @Transform', async () => {
    const body = `{"ids":[${LARGEST}],"lines":[{"count":1,"productId":-9007199254740993}]}`;
    expect(await post('changes', body)).toBe(body);
    expect(await post('distinct', '{"ids":[7,9007199254740993]}')).toBe('{"ids":[7,9007199254740993]}');
    expect(await post('toys', '{"x":{"ids":[1]},"ids":[9007199254740993,1]}')).toBe('{"ids":[9007199254740993,1]}');
  });

  test('is what a module has put in the place of a number', async () => {
    expect(await post('changed-orders', `{"customer_id":${LARGEST},"quantity":1e400,"ids":[${LARGEST}]}`)).toBe(
      `{"customerId":7,"quantity":7,"ids":[${LARGEST}]}`,
    );
    expect(await post('changed-toys?ids=reverse', '{"ids":[1e2,5,1e0]}')).toBe('{"ids":[1,5,100]}');
  });

  test.each([
    ['changed-toys?ids=reverse', `[${LARGEST},5]`],
    ['changed-orders?ids=reverse', `[${LARGEST},5]`],
    ['changed-toys?ids=shift', '[9007199254740993,9007199254740992,5]'],
    ['changed-orders?ids=shift', '[9007199254740993,9007199254740992,5]'],
    // A @Transform has left out an item that is equal to another one as a double.
    ['distinct', '[9007199254740993,9007199254740993]'],
    ['distinct', '[9007199254740993,9007199254740992]'],
  ])('400, never another one, when a module has moved items: %s %s', async (path, ids) => {
    expect(await post(path, `{"ids":${ids}}`)).toMatch(/^400 ids\.\d must be an integer between/);
  });

  const INVALID = '1.5 "1" true 1e400 9223372036854775808 -9223372036854775809 6.0000000000000000001 1e-400'.split(' ');
  test.each([...INVALID, '9007199254740990.99999', '1e1000000000', '{}', 'null'])('400: %s', async (numeral) => {
    for (const body of [`{"ids":[1,${numeral}]}`, `{"lines":[{"count":1,"productId":${numeral}}]}`]) {
      expect(await post('orders', body)).toMatch(/^400 (lines\.0\.productId|ids\.1) must be an integer/);
    }
    expect(await post('toys', `{"ids":[${numeral}]}`)).toContain(`400 ids.0 must be ${INT64}`);
    expect(await post('mixed', `{"quantity":${numeral}}`)).toContain(
      '400 quantity must be an integer between -1 and 9',
    );
  });
});

describe('limits of a body', () => {
  const TOO_MANY =
    '400 The body has more than 11000 values and member names (objects and long numbers count twice, ' +
    'numbers with an exponent three times).';
  const ones = (count: number): string => `[${Array.from({ length: count }, () => '1').join()}]`;

  test('400 body_too_complex names the limit', async () => {
    expect(await post('any', ones(11_000))).toBe(TOO_MANY);
    expect(await post('any', `{${Array.from({ length: 5_500 }, (_, at) => `"${at}":1`).join()}}`)).toBe(TOO_MANY);
    expect(await post('any', '['.repeat(33))).toBe('400 The body nests deeper than 32 levels.');
    expect(await post('any', ones(10_999))).toBe(ones(10_999));
  });

  test('@BodyLimits raises it for an operation', async () => {
    expect(await post('bulk', ones(29_999))).toBe(ones(29_999));
    expect(await post('bulk', ones(30_000))).toContain('400 The body has more than 30000 values');
    const nested = `${'['.repeat(50)}${']'.repeat(50)}`;
    expect(await post('bulk', nested)).toBe(nested);
  });

  test.each([{ values: 0 }, { values: 100_001 }, { values: 1.5 }, { levels: 101 }])(
    '@BodyLimits(%j) throws',
    (limits) => {
      expect(() => BodyLimits(limits)).toThrow('@BodyLimits');
    },
  );
});

test('@BodyLimits({ bytes }) is the limit of one operation', async () => {
  const bodyOf = (length: number): string => JSON.stringify({ text: 'x'.repeat(length - 11) });
  expect(await post('long', bodyOf(100_000))).toBe(bodyOf(100_000));
  expect(await post('long', bodyOf(100_001))).toBe('413 The body must not be larger than 100000 bytes.');
  expect(await post('any', bodyOf(65_537))).toBe('413 The body must not be larger than 65536 bytes.');
});

describe('@TextProperty({ format })', () => {
  const send = (body: object): Promise<HttpAnswer> => app.client.post('/v1/test-toys/formats', body);

  test.each([
    {
      price: '12.5',
      day: '2024-02-29',
      at: '2026-02-28T09:30:00.123456+01:00',
      email: "o'x+1@a-b.example",
      uuid: null,
    },
    { price: '0', day: '0001-01-01', at: '2026-02-28T23:59:59Z', page: 'https://a.example/?b=%20#c', days: [] },
    { uuid: '8e03978e-40d5-43dd-bc93-6894A57F9324', code: 'AB', days: ['2026-12-31'] },
  ])('takes %j', async (body) => {
    const { status, json } = await send(body);
    expect([status, json]).toEqual([200, body]);
  });

  test.each<[object, string]>([
    [{ price: '12.345' }, 'price must be a decimal such as "12.50" of at most 100 characters that matches '],
    [{ price: '012.5' }, 'price must be a decimal'],
    [{ day: '2026-02-29' }, 'day must be a date such as 2026-02-28 of at most 10 characters'],
    [{ at: '2026-02-28T09:30:00' }, 'at must be a time with offset such as 2026-02-28T09:30:00Z'],
    [{ at: '2026-02-30T09:30:00Z' }, 'at must be a time'],
    [{ at: '2026-02-28T24:00:00Z' }, 'at must be a time'],
    [{ email: 'a@b' }, 'email must be an e-mail address'],
    [{ page: 'ftp://a.example' }, 'page must be an http or https URL of at most 30 characters'],
    [{ page: `https://a.example/${'x'.repeat(20)}` }, 'page must be an http or https URL'],
    [{ uuid: '8e03978e40d543ddbc936894a57f9324' }, 'uuid must be null or a UUID of at most 36 characters'],
    [
      { code: 'Ab' },
      'code must be a string of 2 to 9 characters without NUL or unpaired surrogates that matches ^[A-Z]+$',
    ],
    [{ days: ['2026-13-01'] }, 'days.0 must be a date'],
  ])('refuses %j', async (body, message) => {
    const { status, json } = await send(body);
    expect([status, json]).toMatchObject([400, { message: expect.stringContaining(message) as string }]);
  });
});

describe('the document', () => {
  let components: { schemas: Record<string, { properties: object }> };
  let paths: Record<string, { get: { parameters: { name: string; in: string }[] } }>;
  beforeAll(async () => {
    ({ components, paths } = (await app.client.get('/openapi.json')).json);
  });

  test('describes lists with the limits of their items, and marks what is deprecated', () => {
    expect(components.schemas['DescribedToy']?.properties).toMatchObject({
      tags: {
        ...{ type: 'array', minItems: 1, maxItems: 2, uniqueItems: true, description: 'A list.', examples: [['new']] },
        items: { type: 'string', minLength: 1, maxLength: 5 },
      },
      ids: { type: 'array', maxItems: 9, items: { type: 'integer', format: 'int64' } },
      counts: { type: 'array', maxItems: 2, items: { type: 'integer', format: 'int32', minimum: 0, maximum: 9 } },
      colours: { type: 'array', maxItems: 2, items: { type: 'string', enum: COLOUR.enum, description: 'A colour.' } },
      squeaks: { type: 'boolean', description: 'Whether it squeaks.', allOf: [{ default: false }] },
      maker: { type: ['string', 'null'], minLength: 0, maxLength: 40, pattern: '^[^\\x00]*$' },
      word: { deprecated: true },
      remark: { deprecated: true },
    });
    expect(components.schemas).toMatchObject({
      ToySize: { type: 'string', enum: SIZE.enum, description: 'A size.' },
      ToyPaint: { type: 'string', enum: COLOUR.enum, description: 'A colour.' },
    });
    const list = (name: string, items: object): object => ({
      ...{ name, in: 'query', required: false, description: 'A list.' },
      schema: { type: 'array', maxItems: 2, items },
    });
    const own = { in: 'query', required: false };
    const old = { ...own, deprecated: true };
    const parameters = paths['/test-toys/listed']?.get.parameters;
    expect(parameters?.filter((each) => each.in !== 'header')).toEqual([
      list('tag', { type: 'string', minLength: 1, maxLength: 5, pattern: '^[^\\x00]*$' }),
      list('colour', { type: 'string', enum: COLOUR.enum, description: 'A colour.' }),
      list('id', { type: 'integer', format: 'int64' }),
      list('count', { type: 'integer', format: 'int32', minimum: 0, maximum: 9 }),
      { ...own, name: 'makerId', description: 'Something.', schema: { type: 'integer', format: 'int64' } },
      { ...old, name: 'word', description: 'Old.', schema: { type: 'string' } },
      { ...old, name: 'size', description: 'The size.', schema: { $ref: '#/components/schemas/ToySize' } },
    ]);
  });

  test('has formats and patterns as they are checked', () => {
    expect(components.schemas['Formats']?.properties).toMatchObject({
      price: { type: 'string', format: 'decimal', maxLength: 100, pattern: '^[0-9]{1,3}([.][0-9]{1,2})?$' },
      day: { format: 'date', maxLength: 10, pattern: expect.stringContaining('[0-9]{4}-') as string },
      page: { format: 'uri', maxLength: 30 },
      code: { minLength: 2, maxLength: 9, pattern: '^[A-Z]+$' },
      days: { type: 'array', items: { type: 'string', format: 'date' } },
    });
    expect(paths['/test-toys/found-by']?.get).toMatchObject({
      parameters: [{ schema: { maxLength: 5, pattern: '^[a-z]*$' } }, { name: 'If-None-Match' }],
    });
  });
});

test.each([
  ['abcde', 200, ''],
  ['abcdef', 400, 'prefix must be a string of at most 5 characters without NUL or unpaired surrogates that matches ^['],
  ['ABC', 400, 'prefix must be a string of at most 5 characters'],
])('@OpaqueParameter checks the length and the pattern that it documents: %s', async (prefix, status, message) => {
  const answer = await app.client.get(`/v1/test-toys/found-by?prefix=${prefix}`);
  expect(answer.status).toBe(status);
  expect(answer.text).toContain(message);
});

test('the clause for an item of a wrong type names the item once', async () => {
  const { json } = await app.client.post('/v1/test-toys/orders', { lines: [{ count: 1, productId: 1 }, 5] });
  expect(json).toMatchObject({ message: 'lines.1 must be either object or array' });
});

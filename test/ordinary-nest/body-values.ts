import {
  type ArgumentsHost,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  HttpCode,
  HttpException,
  Module,
  type NestInterceptor,
  ParseArrayPipe,
  ParseIntPipe,
  Post,
  type Type as ClassOf,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import * as mappedTypes from '@nestjs/mapped-types';
import * as swagger from '@nestjs/swagger';
import { Expose, Transform, Type } from 'class-transformer';
import {
  Allow,
  Equals,
  IsBoolean,
  IsDefined,
  IsDivisibleBy,
  IsIn,
  IsInt,
  IsNegative,
  IsNumber,
  IsNumberString,
  IsObject,
  IsOptional,
  IsPositive,
  IsString,
  Max,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { Int64Property, IntegerProperty, TextProperty } from '#input';
import { Public } from '#operations';
import { Handlers } from './handlers.js';
import type { Row } from './harness.js';

/* What handlers, guards, interceptors and filters get of a JSON body. */

/** What can be told of a value: type, class, prototype, and members in their order; JSON alone would hide most of it. */
function described(value: unknown): unknown {
  if (typeof value !== 'object' || value === null)
    return `${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`;
  if (value instanceof Date) return `Date ${value.getTime()}`;
  const prototype = Object.getPrototypeOf(value) as object | null;
  const kind =
    prototype === Object.prototype ? 'object' : prototype === Array.prototype ? 'array' : prototype?.constructor.name;
  const isUsual = value instanceof Object && Array.isArray(value) === value instanceof Array;
  return { kind, isUsual, members: Object.entries(value).map(([name, member]) => [name, described(member)]) };
}

export class Payment {
  @IsString()
  type: string;
}

export class Card extends Payment {
  @IsInt()
  number: number;

  @Min(100)
  cvc: number;

  @Int64Property({ description: 'Its number.', required: false })
  account?: bigint;
}

const SUBTYPES: { name: string; value: ClassOf }[] = [{ name: 'card', value: Card }];
export const PAYMENTS = { keepDiscriminatorProperty: true, discriminator: { property: 'type', subTypes: SUBTYPES } };

class Voucher extends Payment {
  @IsOptional()
  @IsNumber()
  worth?: number;

  @IsOptional()
  @ValidateNested({ each: true })
  @Type(() => Payment, PAYMENTS)
  parts?: Payment[];
}
// Its own parts may be vouchers.
SUBTYPES.push({ name: 'voucher', value: Voucher });

class Shape {}

class Circle extends Shape {
  @IsNumber()
  radius: number;
}

const SHAPES = { discriminator: { property: 'shape', subTypes: [{ name: 'circle', value: Circle }] } };

class Line {
  @IsInt()
  quantity: number;

  @IsOptional()
  @ValidateNested()
  @Type(() => Payment, PAYMENTS)
  payment?: Payment;
}

class Order {
  @IsOptional()
  @ValidateNested()
  @Type(() => Payment, PAYMENTS)
  payment?: Payment;

  @IsOptional()
  @ValidateNested({ each: true })
  @Type(() => Payment, PAYMENTS)
  payments?: Payment[];

  @IsOptional()
  @ValidateNested({ each: true })
  @Type(() => Line)
  lines?: Line[];

  @IsOptional()
  @ValidateNested()
  @Type(() => Shape, SHAPES)
  shape?: Shape;

  @IsOptional()
  @ValidateNested({ each: true })
  @Type(() => Shape, SHAPES)
  shapes?: Shape[];
}

const NUMERALS =
  '0 -0 1.0 1e2 5 0.1 -3 "5" 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400 true null'.split(
    ' ',
  );
const INFINITE = '1e400';

/** Rules for numbers by the names of their members: the clause for a refused one, and those of NUMERALS that are accepted. */
const RULES: Record<string, [rule: PropertyDecorator, clause: string, accepted: string]> = {
  isInt: [
    IsInt(),
    'must be an integer number',
    '0 -0 1.0 1e2 5 -3 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400',
  ],
  isNumber: [
    IsNumber(),
    'must be a number conforming to the specified constraints',
    '0 -0 1.0 1e2 5 0.1 -3 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400',
  ],
  withoutDigits: [
    IsNumber({ maxDecimalPlaces: 0 }),
    'must be a number conforming to the specified constraints',
    '0 -0 1.0 1e2 5 -3 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400',
  ],
  withInfinity: [
    IsNumber({ allowInfinity: true }),
    'must be a number conforming to the specified constraints',
    '0 -0 1.0 1e2 5 0.1 -3 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400 1e400',
  ],
  min: [Min(1), 'must not be less than 1', '1.0 1e2 5 9007199254740992 9007199254740993 12345678901234567890 1e400'],
  max: [Max(10), 'must not be greater than 10', '0 -0 1.0 5 0.1 -3 -9223372036854775808 1e-400'],
  isPositive: [
    IsPositive(),
    'must be a positive number',
    '1.0 1e2 5 0.1 9007199254740992 9007199254740993 12345678901234567890 1e400',
  ],
  isNegative: [IsNegative(), 'must be a negative number', '-3 -9223372036854775808'],
  isDivisibleBy: [
    IsDivisibleBy(2),
    'must be divisible by 2',
    '0 -0 1e2 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400',
  ],
  isIn: [IsIn([0, 100]), 'must be one of the following values: 0, 100', '0 -0 1e2 1e-400'],
  equals: [Equals(2 ** 53), 'must be equal to 9007199254740992', '9007199254740992 9007199254740993'],
  isNumberString: [IsNumberString(), 'must be a number string', '"5"'],
  isBoolean: [IsBoolean(), 'must be a boolean value', 'true'],
  isString: [IsString(), 'must be a string', '"5"'],
  isObject: [IsObject(), 'must be an object', ''],
  isDefined: [
    IsDefined(),
    'should not be null or undefined',
    `${NUMERALS.filter((numeral) => numeral !== 'null').join(' ')} 1e400`,
  ],
};

/** The ways in which class-transformer changes a number. */
const CONVERSIONS: Record<string, PropertyDecorator> = {
  allowed: Allow(),
  asNumber: Type(() => Number),
  asString: Type(() => String),
  asDate: Type(() => Date),
  asBoolean: Type(() => Boolean),
  asBigInt: Type(() => BigInt),
  asTypeof: Transform(({ value }: { value: unknown }) => typeof value),
  asSent: Transform(({ obj, key }: { obj: Record<string, unknown>; key: string }) => String(obj[key])),
  exposed: Expose({ name: 'sent_as' }),
};

class Numbers {}
for (const [name, [rule]] of Object.entries(RULES)) {
  rule(Numbers.prototype, name);
  // Not @IsOptional(), which has a rule for null beside it.
  ValidateIf((sent: object) => name in sent)(Numbers.prototype, name);
}

class Converted {}
for (const [name, decorate] of Object.entries(CONVERSIONS)) {
  decorate(Converted.prototype, name);
  Allow()(Converted.prototype, name);
}

class Untyped {
  any: unknown;
}

class Named {
  @IsString()
  name: string;

  @IsOptional()
  @IsInt()
  count?: number;
}

class Declared {
  @TextProperty({ description: 'A text.', minLength: 1, maxLength: 9 })
  title: string;

  @Int64Property({ description: 'A number.' })
  id: bigint;

  @IntegerProperty({ description: 'A number.', minimum: 0, maximum: 9, required: false })
  age?: number;
}

class Settings {
  @IsOptional()
  @IsInt()
  size?: number;
}

/** A parameter decorator of a module that returns `request.body`. */
const SentBody = createParamDecorator(
  (_: undefined, execution: ExecutionContext) => execution.switchToHttp().getRequest<Request>().body as unknown,
);

class PasswordGuard implements CanActivate {
  canActivate(execution: ExecutionContext): boolean {
    const http = execution.switchToHttp();
    http.getResponse<Response>().set('X-Guard', JSON.stringify(http.getRequest<Request>().body));
    return true;
  }
}

class AuditInterceptor implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = execution.switchToHttp();
    http.getResponse<Response>().set('X-Audit', JSON.stringify(http.getRequest<Request>().body));
    return next.handle();
  }
}

@Catch(HttpException)
class AuditFilter implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const seen = JSON.stringify(http.getRequest<Request>().body);
    http.getResponse<Response>().status(error.getStatus()).json({ seen });
  }
}

/** A list is JSON on stock Nest, too, which writes a number as text. */
const inList = (body: unknown): unknown[] => [described(body)];

const VALUES = new Handlers('test-values');
VALUES.bodies(inList, {
  orders: Order,
  ruled: Numbers,
  converted: Converted,
  untyped: Untyped,
  named: Named,
  declared: Declared,
  // unknown, any, an interface: the compiler notes Object.
  object: Object,
  array: Array,
  text: String,
  number: Number,
  'piped-array': [Body(new ParseArrayPipe({ items: Line })), Array],
  'numbers-array': [Body(new ParseArrayPipe({ items: Number })), Array],
  line: [Body('line'), Line],
  settings: [Body('settings'), Settings],
  'untyped-member': [Body('untyped'), Untyped],
  'declared-member': [Body('declared'), Declared],
  'piped-member': [Body('count', ParseIntPipe), Number],
});

@Public()
@Controller('test-values')
class TestValuesController {
  @Post('members')
  @HttpCode(200)
  addMembers(
    @Body('any') any: unknown,
    @Body('count') count: number,
    @Body('text') text: string,
    @Body('isOpen') isOpen: boolean,
    @Body('at') at: Date,
    @Body('lines') lines: Line[],
  ): unknown {
    return [any, count, text, isOpen, at, lines].map(described);
  }

  @Post('seen')
  @HttpCode(200)
  @UseGuards(PasswordGuard)
  @UseInterceptors(AuditInterceptor)
  @UseFilters(AuditFilter)
  addSeen(@Body() named: Named, @SentBody() body: unknown): unknown {
    return [named, body].map(described);
  }

  @Post('seen-declared')
  @HttpCode(200)
  @UseGuards(PasswordGuard)
  @UseInterceptors(AuditInterceptor)
  @UseFilters(AuditFilter)
  addSeenDeclared(@Body() declared: Declared): unknown {
    return described(declared);
  }
}

const PACKAGES = { swagger, 'mapped-types': mappedTypes };

/** A controller whose handlers take the mapped types of a package. */
function mappedController(name: keyof typeof PACKAGES): ClassOf {
  const { IntersectionType, OmitType, PartialType, PickType } = PACKAGES[name];
  class PartialRuled extends PartialType(Named) {}
  class PickedRuled extends PickType(Named, ['count'] as const) {}
  class OmittedRuled extends OmitType(Named, ['count'] as const) {}
  class Joined extends IntersectionType(Named, Declared) {}
  class PartialDeclared extends PartialType(Declared) {}
  class PickedDeclared extends PickType(Declared, ['id'] as const) {}
  class OmittedDeclared extends OmitType(Declared, ['id'] as const) {}
  class PartialOrder extends PartialType(PickType(Order, ['lines', 'payment'] as const)) {}

  const types = {
    'partial-ruled': PartialRuled,
    'picked-ruled': PickedRuled,
    'omitted-ruled': OmittedRuled,
    joined: Joined,
    'partial-declared': PartialDeclared,
    'picked-declared': PickedDeclared,
    'omitted-declared': OmittedDeclared,
    'partial-order': PartialOrder,
  };
  // The document can describe one class of a name.
  if (name === 'mapped-types')
    for (const type of Object.values(types)) swagger.ApiSchema({ name: `Mapped${type.name}` })(type);
  const handlers = new Handlers(`test-values/${name}`);
  handlers.bodies(inList, types);
  return handlers.controller;
}

@Module({
  controllers: [VALUES.controller, TestValuesController, mappedController('swagger'), mappedController('mapped-types')],
})
export class BodyValuesModule {}

function sent(path: string, body: string, more: Partial<Row> = {}): Row {
  return {
    title: `${path}: ${body}`,
    path: `/v1/test-values/${path}`,
    method: 'POST',
    send: { body, headers: { 'content-type': 'application/json' } },
    status: 200,
    ...more,
  };
}

type Meant = NonNullable<Row['meant']>;

/** The difference of a request that the service refuses. */
function refusal(difference: Meant['difference'], message: string, code = 'validation_failed'): Meant {
  return { difference, status: 400, body: { code, message, status: 400 } };
}

/** A request that both refuse, with the message of the service. */
function refused(path: string, body: string, message: string, code?: string): Row {
  return sent(path, body, { status: 400, meant: refusal('faults of input', message, code) });
}

/** A request of which only stock Nest takes a value that PostgreSQL cannot store. */
function unstorable(path: string, body: string, message: string): Row {
  return sent(path, body, { meant: refusal('input that cannot be stored', message) });
}

/** A request of which the service drops a member that the class does not declare. */
function dropping(path: string, body: string, kind: string, members: unknown[] = []): Row {
  return sent(path, body, { meant: { difference: 'undeclared members', body: [{ kind, isUsual: true, members }] } });
}

const BEYOND = 'must be a number that a double can hold';

const RULED: readonly Row[] = Object.entries(RULES).flatMap(([name, [, clause, accepted]]) =>
  [...NUMERALS, INFINITE].map((numeral) => {
    const body = `{"${name}":${numeral}}`;
    if (!accepted.split(' ').includes(numeral)) return refused('ruled', body, `${name} ${clause}`);
    return numeral === INFINITE ? unstorable('ruled', body, `${name} ${BEYOND}`) : sent('ruled', body);
  }),
);

/** The larger numerals are no time that a Date can hold. */
const NO_TIMES = ['9007199254740992', '9007199254740993', '12345678901234567890', '-9223372036854775808'];

const CONVERTED: readonly Row[] = Object.keys(CONVERSIONS).flatMap((name) =>
  NUMERALS.map((numeral) => {
    const body = `{"${name === 'exposed' ? 'sent_as' : name}":${numeral}}`;
    const isTime = name !== 'asDate' || !NO_TIMES.includes(numeral);
    return isTime ? sent('converted', body) : unstorable('converted', body, 'asDate must be a date from 4713 BC on');
  }),
);

/** Handlers that declare no class for the body: what JSON.parse gives. */
const UNCLASSED = ['object', 'array', 'text', 'number'];

const OBJECTS = [
  '{}',
  '[]',
  '[1,{}]',
  '{"b":1,"a":{"d":[1.5,null],"c":[]},"7":1,"3":"x"}',
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"hasOwnProperty":1,"toString":null}',
];

const NO_OBJECTS = ['"text"', '5', 'null', 'true'];

const CARD = '{"type":"card","number":12345678901234567890,"cvc":1e2}';
const NO_CARD = '{"type":"card","number":1,"cvc":-5}';
const TOO_SMALL = 'cvc must not be less than 100';

const ORDERS: readonly Row[] = [
  ...[
    `{"payment":${CARD}}`,
    '{"payment":{"type":"voucher","worth":0.1}}',
    '{"payment":{"type":"other"}}',
    '{"payment":{"type":"__proto__"}}',
    '{"payment":{"type":"constructor"}}',
    `{"payment":null,"payments":null}`,
    `{"payment":[${CARD}]}`,
    '{"payments":[]}',
    `{"payments":${CARD}}`,
    `{"payments":[${CARD},{"type":"voucher","parts":[${CARD},{"type":"other"},{"type":"voucher","parts":[${CARD}]}]}]}`,
    `{"lines":[{"quantity":1,"payment":${CARD}},{"quantity":2,"payment":{"type":"voucher"}},{"quantity":3}]}`,
    `{"lines":{"quantity":1,"payment":${CARD}}}`,
    // Without keepDiscriminatorProperty.
    '{"shape":{"shape":"circle","radius":1}}',
    '{"shape":{"shape":"square"}}',
    '{"shapes":[{"shape":"circle","radius":1},{"shape":"square"},{}]}',
  ].map((body) => sent('orders', body)),
  ...[
    [`{"payment":${NO_CARD}}`, `payment.${TOO_SMALL}`],
    ['{"payment":{"type":"card","number":1}}', `payment.${TOO_SMALL}`],
    ['{"payment":{}}', 'payment.type must be a string'],
    ['{"payment":{"number":1,"cvc":100}}', 'payment.type must be a string'],
    ['{"payment":5}', 'nested property payment must be either object or array'],
    [
      `{"payments":[${CARD},{"type":"voucher","parts":[${NO_CARD}]},{}]}`,
      `payments.1.parts.0.${TOO_SMALL}; payments.2.type must be a string`,
    ],
    [`{"lines":[{"quantity":1,"payment":${NO_CARD}}]}`, `lines.0.payment.${TOO_SMALL}`],
    [
      '{"shape":{"shape":"circle","radius":"1"}}',
      'shape.radius must be a number conforming to the specified constraints',
    ],
  ].map(([body = '', message = '']) => refused('orders', body, message)),
];

const NAME = 'name must be a string';
const COUNT = 'count must be an integer number';
const TITLE = 'title must be a string of 1 to 9 characters without NUL or unpaired surrogates';
const INT64 = 'id must be an integer between -9223372036854775808 and 9223372036854775807';

/** The rows of the mapped types of a package. */
function mapped(name: string): Row[] {
  const taken: [path: string, ...bodies: string[]][] = [
    ['partial-ruled', '{}', '{"name":null,"count":null}', '{"name":"a"}', '{"count":1e2}'],
    ['picked-ruled', '{}', '{"count":-0}'],
    ['omitted-ruled', '{"name":"a"}'],
    ['joined', '{"name":"a","count":1,"title":"b","id":-5,"age":9}', '{"name":"a","title":"b","id":1e2}'],
    ['partial-declared', '{}', '{"title":null,"id":null,"age":null}', '{"id":5}', '{"id":-0}', '{"id":1.0}'],
    ['picked-declared', '{"id":9007199254740991}', '{"id":-5}'],
    ['omitted-declared', '{"title":"a"}', '{"title":"a","age":5}'],
    ['partial-order', '{}', '{"lines":null}', `{"lines":[{"quantity":1,"payment":${CARD}}],"payment":${CARD}}`],
  ];
  const notTaken: [path: string, body: string, message: string][] = [
    ['partial-ruled', '{"name":5,"count":0.5}', `${NAME}; ${COUNT}`],
    ['partial-ruled', '[]', 'the body must be a JSON object'],
    ['picked-ruled', '{"count":"1"}', COUNT],
    ['omitted-ruled', '{}', NAME],
    ['joined', '{"name":5,"count":0.5,"title":""}', `${NAME}; ${COUNT}; ${TITLE}; id is required`],
    ['partial-declared', '{"title":"","id":"5"}', `${TITLE}; ${INT64}, sent as a JSON number, not a string`],
    ['picked-declared', '{}', 'id is required'],
    ['omitted-declared', '{"title":"","age":0.5}', `${TITLE}; age must be an integer between 0 and 9`],
    ['partial-order', `{"lines":[{"quantity":1,"payment":${NO_CARD}}]}`, `lines.0.payment.${TOO_SMALL}`],
  ];
  return [
    ...taken.flatMap(([path, ...bodies]) => bodies.map((body) => sent(`${name}/${path}`, body))),
    ...notTaken.map(([path, body, message]) => refused(`${name}/${path}`, body, message)),
    dropping(`${name}/picked-ruled`, '{"name":"a"}', 'PickedRuled'),
    dropping(`${name}/omitted-declared`, '{"title":"a","id":5}', 'OmittedDeclared', [['title', 'string a']]),
  ];
}

export const BODY_VALUES: readonly Row[] = [
  ...RULED,
  ...CONVERTED,
  ...NUMERALS.flatMap((numeral) => [
    sent('object', `[${numeral}]`),
    sent('untyped', `{"any":${numeral},"more":[${numeral}]}`),
    sent('members', `{"any":${numeral},"count":${numeral},"text":${numeral},"isOpen":${numeral},"at":${numeral}}`),
  ]),
  unstorable('object', `[1,${INFINITE}]`, `1 ${BEYOND}`),
  unstorable('untyped', `{"any":[${INFINITE}]}`, `any.0 ${BEYOND}`),
  unstorable('members', `{"count":${INFINITE}}`, `count ${BEYOND}`),

  ...UNCLASSED.flatMap((path) => [
    ...OBJECTS.map((body) => sent(path, body)),
    ...NO_OBJECTS.map((body) => refused(path, body, 'the body must be a JSON object or array')),
  ]),
  refused(
    'object',
    '{"a":1,}',
    'The body is not valid JSON: Expected double-quoted property name (character 8).',
    'malformed_json',
  ),
  sent('object', '{"a":1,"a":2}', {
    meant: refusal(
      'types of bodies',
      'The body is not valid JSON: a member is named twice (character 8).',
      'malformed_json',
    ),
  }),
  sent('object', '\ufeff{}', {
    meant: refusal(
      'types of bodies',
      'The body is not valid JSON: it starts with a byte order mark.',
      'malformed_json',
    ),
  }),
  ...NO_OBJECTS.flatMap((body) =>
    ['untyped', 'named', 'declared'].map((path) => refused(path, body, 'the body must be a JSON object')),
  ),
  sent('untyped', '{"__proto__":{"polluted":1},"constructor":{"prototype":1},"a":1}'),
  sent('untyped', '[{}]', { meant: refusal('types of bodies', 'the body must be a JSON object') }),
  sent('named', '{"__proto__":{"name":1},"name":"x"}'),
  sent('declared', '{"__proto__":{"id":1},"title":"x","id":9007199254740991}'),
  refused('declared', '{"__proto__":{"title":"x"},"id":1}', 'title is required'),
  dropping('named', '{"name":"x","title":"x"}', 'Named', [['name', 'string x']]),
  dropping('declared', '{"title":"x","id":5,"name":"x"}', 'Declared', [
    ['title', 'string x'],
    ['id', 'bigint 5'],
  ]),

  sent('array', '[{"quantity":"x","more":[1.0]},null]'),
  ...['[]', '[{"quantity":12345678901234567890},{"quantity":-0,"more":[1.0]}]'].map((body) =>
    sent('piped-array', body),
  ),
  sent('piped-array', `[{"quantity":1,"payment":${CARD}}]`),
  sent('piped-array', '[{"quantity":"x"},{"quantity":0.5}]', { status: 400, contains: 'quantity must be an integer' }),
  sent('piped-array', '[null]', { status: 400, contains: 'quantity must be an integer' }),
  ...['5', '9007199254740993', '"5"'].map((numeral) => sent('numbers-array', `[${numeral}]`)),
  ...['"x"', 'null', '{}'].map((item) => sent('numbers-array', `[${item}]`, { status: 400 })),

  ...['{}', '[]', '{"toString":1}'].map((body) => sent('members', body)),
  sent('members', '{"at":"2020-01-01","count":"5","text":5,"isOpen":"true","lines":[{"quantity":"a"}]}'),
  ...['5', '"5"', '-0'].map((numeral) => sent('piped-member', `{"count":${numeral}}`)),
  ...['true', '"x"', '0.5'].map((numeral) => sent('piped-member', `{"count":${numeral}}`, { status: 400 })),
  ...['{}', '[]', '{"settings":null}', '{"settings":{}}', '{"settings":{"size":1.0}}'].map((body) =>
    sent('settings', body),
  ),
  ...['5', '"a"', '[{}]'].map((value) =>
    refused('settings', `{"settings":${value}}`, 'settings must be a JSON object'),
  ),
  ...['{}', '{"line":null}', '{"line":{}}'].map((body) =>
    refused('line', body, 'line.quantity must be an integer number'),
  ),
  ...['{}', '[]', '{"declared":null}', '{"declared":{}}'].map((body) =>
    refused('declared-member', body, 'declared.title is required; declared.id is required'),
  ),
  refused('declared-member', '{"declared":{"title":"","id":1}}', `declared.${TITLE}`),
  refused('declared-member', '{"declared":7}', 'declared must be a JSON object'),
  refused('declared-member', '"7"', 'the body must be a JSON object or array'),
  dropping('declared-member', '{"declared":{"title":"x","id":5,"name":"x"}}', 'Declared', [
    ['title', 'string x'],
    ['id', 'bigint 5'],
  ]),
  ...['{}', '{"untyped":null}', '{"untyped":{"a":[1.0]}}'].map((body) => sent('untyped-member', body)),
  sent('untyped-member', '{"untyped":5}', { meant: refusal('types of bodies', 'untyped must be a JSON object') }),

  ...ORDERS,
  ...Object.keys(PACKAGES).flatMap(mapped),

  sent('seen', '{ "name": "a", "count": 1e2 }'),
  sent('seen', '{"name":5,"more":[-0,9007199254740993,12345678901234567890,0.10]}', {
    status: 400,
    isNoErrorBody: true,
    contains: '9007199254740992,12345678901234567000,0.1]',
  }),
  sent('seen-declared', '{ "title": "a", "id": 1e2 }'),
  sent('seen-declared', '{"title":"a","id":9007199254740991}'),
  sent('seen-declared', '{"id":1.0}', { status: 400, isNoErrorBody: true, contains: '{\\"id\\":1}' }),
];

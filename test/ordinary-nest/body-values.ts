import {
  applyDecorators,
  type ArgumentsHost,
  Body,
  createParamDecorator,
  type ExecutionContext,
  HttpCode,
  type HttpException,
  Module,
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
  IsDefined,
  IsInt,
  IsNumber,
  IsNumberString,
  IsOptional,
  IsString,
  Min,
  ValidateIf,
  ValidateNested,
  type ValidationOptions,
} from 'class-validator';
import type { Request, Response } from 'express';
import { Int64Property, IntegerProperty, TextProperty } from '#input';
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
  @IsString() type: string;
}

export class Card extends Payment {
  @IsInt() number: number;
  @Min(100) cvc: number;
  @Int64Property({ description: 'Its number.', required: false }) account?: bigint;
}

const SUBTYPES: { name: string; value: ClassOf }[] = [{ name: 'card', value: Card }];
export const PAYMENTS = { keepDiscriminatorProperty: true, discriminator: { property: 'type', subTypes: SUBTYPES } };

const Nested = (options: ValidationOptions, ...type: Parameters<typeof Type>): PropertyDecorator =>
  applyDecorators(IsOptional(), ValidateNested(options), Type(...type));

class Voucher extends Payment {
  @IsOptional() @IsNumber() worth?: number;
  @Nested({ each: true }, () => Payment, PAYMENTS) parts?: Payment[];
}
// Its own parts may be vouchers.
SUBTYPES.push({ name: 'voucher', value: Voucher });

class Shape {}

class Circle extends Shape {
  @IsNumber() radius: number;
}

const SHAPES = { discriminator: { property: 'shape', subTypes: [{ name: 'circle', value: Circle }] } };

class Line {
  @IsInt() quantity: number;
  @Nested({}, () => Payment, PAYMENTS) payment?: Payment;
}

class Order {
  @Nested({}, () => Payment, PAYMENTS) payment?: Payment;
  @Nested({ each: true }, () => Payment, PAYMENTS) payments?: Payment[];
  @Nested({ each: true }, () => Line) lines?: Line[];
  @Nested({}, () => Shape, SHAPES) shape?: Shape;
}

const INTEGERS = '0 -0 1.0 1e2 5 -3 9007199254740992 9007199254740993 12345678901234567890 -9223372036854775808 1e-400';
const NUMERALS = [...INTEGERS.split(' '), '0.1', '"5"', 'true', 'null'];
const INFINITE = '1e400';

/** Rules of each kind by the names of their members: the clause for a refused one, and those of NUMERALS that are accepted. */
const RULES: Record<string, [rule: PropertyDecorator, clause: string, accepted: string]> = {
  isInt: [IsInt(), 'must be an integer number', INTEGERS],
  withInfinity: [
    IsNumber({ allowInfinity: true }),
    'must be a number conforming to the specified constraints',
    `${INTEGERS} 0.1 1e400`,
  ],
  min: [Min(1), 'must not be less than 1', '1.0 1e2 5 9007199254740992 9007199254740993 12345678901234567890 1e400'],
  isNumberString: [IsNumberString(), 'must be a number string', '"5"'],
  isString: [IsString(), 'must be a string', '"5"'],
  isDefined: [IsDefined(), 'should not be null or undefined', `${INTEGERS} 0.1 "5" true 1e400`],
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
  @IsString() name: string;
  @IsOptional() @IsInt() count?: number;
}

class Declared {
  @TextProperty({ description: 'A text.', minLength: 1, maxLength: 9 }) title: string;
  @Int64Property({ description: 'A number.' }) id: bigint;
  @IntegerProperty({ description: 'A number.', minimum: 0, maximum: 9, required: false }) age?: number;
}

class Settings {
  @IsOptional() @IsInt() size?: number;
}

/** A parameter decorator of a module that returns `request.body`. */
const SentBody = createParamDecorator(
  (_: undefined, execution: ExecutionContext) => execution.switchToHttp().getRequest<Request>().body as unknown,
);

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

VALUES.add(Post('members'), 'members', (...values: unknown[]) => values.map(described), {
  parameters: [
    [Body('any'), Object],
    [Body('count'), Number],
    [Body('text'), String],
    [Body('isOpen'), Boolean],
    [Body('at'), Date],
    [Body('lines'), Array],
  ],
  decorators: [HttpCode(200)],
});
/** The body as guards, interceptors and filters find it. */
const seenIn = (host: ArgumentsHost): string => JSON.stringify(host.switchToHttp().getRequest<Request>().body);
const note = (field: string, host: ArgumentsHost): Response =>
  host.switchToHttp().getResponse<Response>().set(field, seenIn(host));
const SEEING = [
  HttpCode(200),
  UseGuards({ canActivate: (execution) => Boolean(note('X-Guard', execution)) }),
  UseInterceptors({ intercept: (execution, next) => (note('X-Audit', execution), next.handle()) }),
  UseFilters({
    catch: (error: HttpException, host) =>
      host
        .switchToHttp()
        .getResponse<Response>()
        .status(error.getStatus())
        .json({ seen: seenIn(host) }),
  }),
];
VALUES.add(Post('seen'), 'seen', (named: Named, body: unknown) => [named, body].map(described), {
  parameters: [
    [Body(), Named],
    [SentBody(), Object],
  ],
  decorators: SEEING,
});
VALUES.bodies(described, { 'seen-declared': Declared }, ...SEEING);

const PACKAGES = { swagger, 'mapped-types': mappedTypes };

/** A controller whose handlers take the mapped types of a package. */
function mappedController(name: keyof typeof PACKAGES): ClassOf {
  const { IntersectionType, OmitType, PartialType, PickType } = PACKAGES[name];
  class PartialRuled extends PartialType(Named) {}
  class Joined extends IntersectionType(Named, Declared) {}
  class PartialDeclared extends PartialType(Declared) {}
  class StrictDeclared extends PartialType(Declared, { skipNullProperties: false }) {}
  class PickedDeclared extends PickType(Declared, ['id'] as const) {}
  class OmittedDeclared extends OmitType(Declared, ['id'] as const) {}
  class PartialOrder extends PartialType(PickType(Order, ['lines', 'payment'] as const)) {}

  const types = {
    'partial-ruled': PartialRuled,
    joined: Joined,
    'partial-declared': PartialDeclared,
    'strict-declared': StrictDeclared,
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
  controllers: [VALUES.controller, mappedController('swagger'), mappedController('mapped-types')],
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
function dropping(path: string, body: string, kind: string, members: unknown[]): Row {
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

const TEXTS: Record<string, string> = {
  card: '{"type":"card","number":12345678901234567890,"cvc":1e2}',
  noCard: '{"type":"card","number":1,"cvc":-5}',
  polluting:
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"hasOwnProperty":1,"toString":null}',
  title: 'title must be a string of 1 to 9 characters without NUL or unpaired surrogates',
  id: 'id must be an integer between -9223372036854775808 and 9223372036854775807',
};

/**
 * Paths, bodies, and what comes of them: nothing for 200 of both; `400` of both, with the message of the service if one follows;
 * `200` of stock Nest, and the message of a 400 of the service. `$` and a name stand for a text of TEXTS.
 */
function table(text: string): Row[] {
  const rows = text
    .replaceAll(/\$(\w+)/g, (_, name: string) => TEXTS[name] ?? '')
    .trim()
    .split('\n');
  return rows.flatMap((row) => {
    const [paths = '', bodies = '', outcome = ''] = row.split(' | ');
    const [, status, message = ''] = /^(\d+)? ?(.*)$/.exec(outcome) ?? [];
    const rowOf = (path: string, body: string): Row => {
      if (status === '200') return sent(path, body, { meant: refusal('types of bodies', message) });
      if (message !== '') return refused(path, body, message);
      return sent(path, body, status === '400' ? { status: 400 } : {});
    };
    return bodies.split(' ¦ ').flatMap((body) => paths.split(' ').map((path) => rowOf(path, body)));
  });
}

const TABLE = String.raw`
object array text number | {} ¦ [] ¦ [1,{}] ¦ {"b":1,"a":{"d":[1.5,null],"c":[]},"7":1,"3":"x"} ¦ $polluting
object array text number | "text" ¦ 5 ¦ null ¦ true | 400 the body must be a JSON object or array
untyped named declared | "text" ¦ 5 ¦ null ¦ true | 400 the body must be a JSON object
untyped | {"__proto__":{"polluted":1},"constructor":{"prototype":1},"a":1}
untyped | [{}] | 200 the body must be a JSON object
named | {"__proto__":{"name":1},"name":"x"}
declared | {"__proto__":{"id":1},"title":"x","id":9007199254740991}
declared | {"__proto__":{"title":"x"},"id":1} | 400 title is required
array | [{"quantity":"x","more":[1.0]},null]
piped-array | [] ¦ [{"quantity":12345678901234567890},{"quantity":-0,"more":[1.0]}] ¦ [{"quantity":1,"payment":$card}]
numbers-array | [5] ¦ [9007199254740993] ¦ ["5"]
numbers-array | ["x"] ¦ [null] ¦ [{}] | 400
members | {} ¦ [] ¦ {"toString":1}
members | {"at":"2020-01-01","count":"5","text":5,"isOpen":"true","lines":[{"quantity":"a"}]}
piped-member | {"count":5} ¦ {"count":"5"} ¦ {"count":-0}
piped-member | {"count":true} ¦ {"count":"x"} ¦ {"count":0.5} | 400
settings | {} ¦ [] ¦ {"settings":null} ¦ {"settings":{}} ¦ {"settings":{"size":1.0}}
settings | {"settings":5} ¦ {"settings":"a"} ¦ {"settings":[{}]} | 400 settings must be a JSON object
line | {} ¦ {"line":null} ¦ {"line":{}} | 400 line.quantity must be an integer number
declared-member | {} ¦ [] ¦ {"declared":null} ¦ {"declared":{}} | 400 declared.title is required; declared.id is required
declared-member | {"declared":{"title":"","id":1}} | 400 declared.$title
declared-member | {"declared":7} | 400 declared must be a JSON object
declared-member | "7" | 400 the body must be a JSON object or array
untyped-member | {} ¦ {"untyped":null} ¦ {"untyped":{"a":[1.0]}}
untyped-member | {"untyped":5} | 200 untyped must be a JSON object
orders | {"payment":$card} ¦ {"payment":[$card]} ¦ {"payments":[]} ¦ {"payments":$card} ¦ {"payment":null,"payments":null}
orders | {"payment":{"type":"voucher","worth":0.1}} ¦ {"payment":{"type":"other"}}
orders | {"payment":{"type":"__proto__"}} ¦ {"payment":{"type":"constructor"}}
orders | {"payments":[$card,{"type":"voucher","parts":[$card,{"type":"other"},{"type":"voucher","parts":[$card]}]}]}
orders | {"lines":[{"quantity":1,"payment":$card},{"quantity":2,"payment":{"type":"voucher"}},{"quantity":3}]}
orders | {"lines":{"quantity":1,"payment":$card}}
orders | {"shape":{"shape":"circle","radius":1}} ¦ {"shape":{"shape":"square"}}
orders | {"payment":$noCard} ¦ {"payment":{"type":"card","number":1}} | 400 payment.cvc must not be less than 100
orders | {"payment":{}} ¦ {"payment":{"number":1,"cvc":100}} | 400 payment.type must be a string
orders | {"payment":5} | 400 nested property payment must be either object or array
orders | {"payments":[$card,{"type":"voucher","parts":[$noCard]},{}]} | 400 payments.1.parts.0.cvc must not be less than 100; payments.2.type must be a string
orders | {"lines":[{"quantity":1,"payment":$noCard}]} | 400 lines.0.payment.cvc must not be less than 100
orders | {"shape":{"shape":"circle","radius":"1"}} | 400 shape.radius must be a number conforming to the specified constraints
seen | { "name": "a", "count": 1e2 }
seen-declared | { "title": "a", "id": 1e2 } ¦ {"title":"a","id":9007199254740991}
`;

/** Of the mapped types of a package, whose name stands before their paths. */
const MAPPED = `
partial-ruled | {} ¦ {"name":null,"count":null} ¦ {"name":"a"} ¦ {"count":1e2}
partial-ruled | {"name":5,"count":0.5} | 400 name must be a string; count must be an integer number
partial-ruled | [] | 400 the body must be a JSON object
joined | {"name":"a","count":1,"title":"b","id":-5,"age":9} ¦ {"name":"a","title":"b","id":1e2}
joined | {"name":5,"count":0.5,"title":""} | 400 name must be a string; count must be an integer number; $title; id is required
partial-declared | {} ¦ {"title":null,"id":null,"age":null} ¦ {"id":5} ¦ {"id":-0} ¦ {"id":1.0}
partial-declared | {"title":"","id":"5"} | 400 $title; $id, sent as a JSON number, not a string
strict-declared | {"title":null} | 400 $title
picked-declared | {"id":9007199254740991} ¦ {"id":-5}
picked-declared | {} | 400 id is required
omitted-declared | {"title":"a"} ¦ {"title":"a","age":5}
omitted-declared | {"title":"","age":0.5} | 400 $title; age must be an integer between 0 and 9
partial-order | {} ¦ {"lines":null} ¦ {"lines":[{"quantity":1,"payment":$card}],"payment":$card}
partial-order | {"lines":[{"quantity":1,"payment":$noCard}]} | 400 lines.0.payment.cvc must not be less than 100
`;

const NO_JSON = 'The body is not valid JSON:';
const MALFORMED = 'malformed_json';
const X_AND_5 = [
  ['title', 'string x'],
  ['id', 'bigint 5'],
];

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
  refused('object', '{"a":1,}', `${NO_JSON} Expected double-quoted property name (character 8).`, MALFORMED),
  sent('object', '{"a":1,"a":2}', {
    meant: refusal('types of bodies', `${NO_JSON} a member is named twice (character 8).`, MALFORMED),
  }),
  sent('object', '\ufeff{}', {
    meant: refusal('types of bodies', `${NO_JSON} it starts with a byte order mark.`, MALFORMED),
  }),
  ...table(TABLE),
  ...Object.keys(PACKAGES).flatMap((name) => [
    ...table(MAPPED.replaceAll(/^(?=.)/gm, `${name}/`)),
    dropping(`${name}/omitted-declared`, '{"title":"a","id":5}', 'OmittedDeclared', [['title', 'string a']]),
  ]),
  ...['[{"quantity":"x"},{"quantity":0.5}]', '[null]'].map((body) =>
    sent('piped-array', body, { status: 400, contains: 'quantity must be an integer' }),
  ),
  dropping('named', '{"name":"x","title":"x"}', 'Named', [['name', 'string x']]),
  dropping('declared', '{"title":"x","id":5,"name":"x"}', 'Declared', X_AND_5),
  dropping('declared-member', '{"declared":{"title":"x","id":5,"name":"x"}}', 'Declared', X_AND_5),
  sent('seen', '{"name":5,"more":[-0,9007199254740993,12345678901234567890,0.10]}', {
    status: 400,
    isNoErrorBody: true,
    contains: '9007199254740992,12345678901234567000,0.1]',
  }),
  sent('seen-declared', '{"id":1.0}', { status: 400, isNoErrorBody: true, contains: '{\\"id\\":1}' }),
];

import {
  Body,
  type CallHandler,
  Controller,
  type ExecutionContext,
  HttpCode,
  Module,
  type NestInterceptor,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import { PartialType, PickType } from '@nestjs/swagger';
import { Expose, plainToInstance, Transform, Type } from 'class-transformer';
import { IsDate, IsInt, IsObject, IsOptional, IsString, Min, ValidateNested } from 'class-validator';
import type { Request } from 'express';
import { BodyLimits, Int64Property, IntegerProperty } from '#input';
import { Public } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';

/* Members that a decorator declares as integers are exact. `ordinary-nest/body-values` compares all others with stock Nest. */

const LARGEST = '9223372036854775807';
const described = { description: 'A number.' };

class Payment {
  @IsString()
  type: string;
}

class Card extends Payment {
  @IsInt()
  number: number;

  @Min(100)
  cvc: number;

  @Int64Property({ ...described, required: false })
  account?: bigint;
}

const PAYMENTS = {
  keepDiscriminatorProperty: true,
  discriminator: { property: 'type', subTypes: [{ name: 'card', value: Card }] },
};

class Line {
  @Int64Property(described)
  productId: bigint;

  @ValidateNested()
  @Type(() => Payment, PAYMENTS)
  @IsOptional()
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

  @Int64Property({ ...described, required: false, isArray: true, maxItems: 9 })
  ids?: bigint[];

  @Int64Property({ ...described, required: false })
  @Expose({ name: 'customer_id' })
  customerId?: bigint;

  @IntegerProperty({ ...described, required: false, minimum: 0, maximum: 9 })
  count?: number;

  @IsOptional()
  @IsDate()
  @Type(() => Date)
  at?: Date;

  @IsOptional()
  @IsObject()
  meta?: Record<string, unknown>;
}

class OrderChange extends PartialType(PickType(Order, ['ids', 'lines'] as const)) {}

class OnlyIds {
  @Int64Property({ ...described, isArray: true, maxItems: 9 })
  ids: bigint[];
}

class DistinctIds {
  // Acts before the decorator below it.
  @Transform(({ value }: { value: number[] }) => [...new Set(value)])
  @Int64Property({ ...described, isArray: true, maxItems: 9 })
  ids: bigint[];
}

/** The same members without classes, because only declared members of a class are sent. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

/** Changes the body itself, as the query says. */
class ChangingInterceptor implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): ReturnType<CallHandler['handle']> {
    const { body, query } = execution.switchToHttp().getRequest<Request<object, unknown, { ids?: number[] }>>();
    if (query['ids'] === 'reverse' || query['ids'] === 'shift') body.ids?.[query['ids']]();
    else Object.assign(body, { customer_id: 7, count: 7 });
    return next.handle();
  }
}

@Public()
@Controller('test-bodies')
class TestBodiesController {
  @Post('orders')
  @HttpCode(200)
  addOrder(@Body() order: Order): unknown {
    return { ...(plain(order) as object), isCard: order.payment instanceof Card };
  }

  @Post('changes')
  @HttpCode(200)
  changeOrder(@Body() change: OrderChange): unknown {
    return plain(change);
  }

  @Post('ids')
  @HttpCode(200)
  addIds(@Body() { ids }: OnlyIds): unknown {
    return ids;
  }

  @Post('changed-orders')
  @HttpCode(200)
  @UseInterceptors(ChangingInterceptor)
  addChangedOrder(@Body() order: Order): unknown {
    return plain(order);
  }

  @Post('changed-ids')
  @HttpCode(200)
  @UseInterceptors(ChangingInterceptor)
  addChangedIds(@Body() { ids }: OnlyIds): unknown {
    return ids;
  }

  @Post('distinct-ids')
  @HttpCode(200)
  addDistinctIds(@Body() { ids }: DistinctIds): unknown {
    return ids;
  }

  @Post('any')
  @HttpCode(200)
  addAny(@Body() body: unknown): unknown {
    return { length: JSON.stringify(body).length };
  }

  @Post('bulk')
  @HttpCode(200)
  @BodyLimits({ values: 30_000, levels: 50 })
  addBulk(@Body() body: unknown): unknown {
    return { length: JSON.stringify(body).length };
  }
}

@Module({ controllers: [TestBodiesController] })
class BodiesModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [BodiesModule] });
});
afterAll(() => app.close());

/** The text of a 200, or the message of an error. */
async function post(path: string, body: string): Promise<string> {
  const answer = await app.client.post(`/v1/test-bodies/${path}`, body, { expects500: true });
  return answer.status === 200 ? answer.text : `${answer.status} ${answer.json.message}`;
}

describe('class-transformer sees ordinary objects', () => {
  test('members of a discriminated class stay, and its int64 is exact', async () => {
    const card = `{"type":"card","number":1,"cvc":123,"account":${LARGEST}}`;
    expect(await post('orders', `{"payment":${card},"payments":[${card}]}`)).toBe(
      `{"payment":${card},"payments":[${card}],"isCard":true}`,
    );
  });

  test('the largest time that a Date has, and none beyond it', async () => {
    expect(await post('orders', '{"at":8640000000000000}')).toBe('{"at":"+275760-09-13T00:00:00.000Z","isCard":false}');
    expect(await post('orders', '{"at":8640000000000001}')).toBe('400 at must be a Date instance');
  });
});

describe('declared int64', () => {
  test.each([
    ['an array', '{"ids":[9007199254740993,-9223372036854775808,1.0,1e2,-0,9223372036854775807.000]}'],
    ['a member of an array', `{"lines":[{"productId":1},{"productId":${LARGEST}}]}`],
    ['another name than in JSON', `{"customer_id":${LARGEST}}`],
    ['an escaped name', '{"\\u0069ds":[9007199254740993]}'],
  ])('is exact: %s', async (_, body) => {
    const integers: [RegExp, string][] = [
      [/9223372036854775807\.000/, LARGEST],
      [/1\.0\b/, '1'],
      [/1e2/, '100'],
      [/-0/, '0'],
      [/customer_id/, 'customerId'],
      [/\\u0069/, 'i'],
    ];
    const expected = integers.reduce((text, [spelled, written]) => text.replace(spelled, written), body);
    expect(await post('orders', body)).toBe(expected.replace(/}$/, ',"isCard":false}'));
  });

  test('is exact in mapped types and in a class with decorators of the platform alone', async () => {
    const body = `{"ids":[${LARGEST}],"lines":[{"productId":-9007199254740993}]}`;
    expect(await post('changes', body)).toBe(body);
    expect(await post('ids', `{"x":{"ids":[1]},"ids":[9007199254740993,1]}`)).toBe('[9007199254740993,1]');
  });

  test('is what a module has put in the place of a number', async () => {
    expect(await post('changed-orders', `{"customer_id":${LARGEST},"count":1e400,"ids":[${LARGEST}]}`)).toBe(
      `{"customerId":7,"count":7,"ids":[${LARGEST}]}`,
    );
    expect(await post('changed-ids?ids=reverse', '{"ids":[1e2,5,1e0]}')).toBe('[1,5,100]');
  });

  test.each([
    ['reverse', `[${LARGEST},5]`],
    ['shift', '[9007199254740993,9007199254740992]'],
    ['shift', '[9007199254740993,9007199254740992,5]'],
  ])('400, never another one, when a module has moved items: %s %s', async (change, ids) => {
    for (const path of ['changed-ids', 'changed-orders']) {
      expect(await post(`${path}?ids=${change}`, `{"ids":${ids}}`)).toMatch(/^400 ids\.\d must be an integer between/);
    }
  });

  test('400, never another one, when a @Transform has left out items that are equal as doubles', async () => {
    expect(await post('distinct-ids', '{"ids":[9007199254740993,9007199254740993]}')).toMatch(
      /^400 ids\.\d must be an integer/,
    );
    expect(await post('distinct-ids', '{"ids":[9007199254740993,9007199254740992]}')).toMatch(
      /^400 ids\.\d must be an integer/,
    );
    expect(await post('distinct-ids', '{"ids":[7,9007199254740993]}')).toBe('[7,9007199254740993]');
  });

  const INVALID = ['1.5', '"1"', 'true', '1e400', '9223372036854775808', '-9223372036854775809'].concat([
    '6.0000000000000000001',
    '1e-400',
    '9007199254740990.99999',
    '1e1000000000',
    '{}',
    'null',
  ]);
  test.each(INVALID)('400: %s', async (numeral) => {
    for (const body of [`{"ids":[1,${numeral}]}`, `{"lines":[{"productId":${numeral}}]}`]) {
      expect(await post('orders', body)).toMatch(/^400 (lines\.0\.productId|ids\.1) must be an integer/);
    }
    expect(await post('ids', `{"ids":[${numeral}]}`)).toContain(
      '400 ids.0 must be an integer between -9223372036854775808 and 9223372036854775807',
    );
    expect(await post('orders', `{"count":${numeral}}`)).toContain('400 count must be an integer between 0 and 9');
  });

  test('a small integer is an integer however it is spelled', async () => {
    expect(await post('orders', '{"count":0.9e1}')).toBe('{"count":9,"isCard":false}');
  });
});

describe('members named like those of Object', () => {
  test('__proto__ reaches no prototype through class-transformer', async () => {
    const answer = await post('orders', '{"meta":{"__proto__":{"polluted":1},"hasOwnProperty":2},"__proto__":{"x":1}}');
    // class-transformer leaves out members that are named like methods.
    expect(answer).toBe('{"meta":{},"isCard":false}');
    expect(plainToInstance(Order, {})).not.toHaveProperty('polluted');
    expect(await post('changes', '{"__proto__":{"ids":[1]}}')).toBe('{}');
    expect(await app.client.post('/v1/pets', '{"__proto__":{"name":"Rex"},"categoryId":1}')).toMatchObject({
      status: 400,
      json: { message: 'name is required' },
    });
  });
});

describe('limits of a body', () => {
  const TOO_MANY =
    '400 The body has more than 11000 values and member names (objects and long numbers count twice, ' +
    'numbers with an exponent three times).';

  test('400 body_too_complex names the limit', async () => {
    const ones = (count: number): string => `[${Array.from({ length: count }, () => '1').join()}]`;
    expect((await post('any', ones(11_000))).slice(0, 200)).toBe(TOO_MANY);
    expect(await post('any', `{${Array.from({ length: 5_500 }, (_, at) => `"${at}":1`).join()}}`)).toBe(TOO_MANY);
    expect(await post('any', '['.repeat(33))).toBe('400 The body nests deeper than 32 levels.');
    expect(await app.client.post('/v1/test-bodies/any', ones(11_000))).toMatchObject({
      json: { code: 'body_too_complex', status: 400 },
    });
    expect(await post('any', ones(10_999))).toBe('{"length":21999}');
  });

  test('@BodyLimits raises it for an operation', async () => {
    const ones = (count: number): string => `[${Array.from({ length: count }, () => '1').join()}]`;
    expect(await post('bulk', ones(29_999))).toBe('{"length":59999}');
    expect(await post('bulk', ones(30_000))).toContain('400 The body has more than 30000 values');
    expect(await post('bulk', `${'['.repeat(50)}${']'.repeat(50)}`)).toBe('{"length":100}');
  });

  test.each([{ values: 0 }, { values: 100_001 }, { values: 1.5 }, { levels: 101 }])(
    '@BodyLimits(%j) fails at import',
    (limits) => {
      expect(() => BodyLimits(limits)).toThrow('@BodyLimits');
    },
  );
});

test('the document describes an array of int64', async () => {
  const { schemas } = (await app.client.get('/openapi.json')).json.components;
  expect(schemas.OnlyIds.properties.ids).toEqual({
    type: 'array',
    maxItems: 9,
    description: 'A number.',
    items: { type: 'integer', format: 'int64' },
  });
});

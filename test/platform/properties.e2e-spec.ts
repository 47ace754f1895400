import {
  Body,
  Controller,
  Get,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Param,
  Post,
  Query,
} from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import type { Request } from 'express';
import { IsOptional, IsString } from 'class-validator';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { object } from '../../src/platform/input/properties/structures.js';
import { text } from '../../src/platform/input/properties/values.js';
import {
  ArrayProperty,
  BooleanProperty,
  DateProperty,
  DateTimeProperty,
  DecimalProperty,
  Int64Parameter,
  IntegerProperty,
  NumberProperty,
  ObjectProperty,
  TextProperty,
} from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* Values of decorated properties from the request to the handler and back to the answer, and their schemas in the document. */

class Address {
  @TextProperty({ description: 'The town.', example: 'Ulm', minLength: 1, maxLength: 40 })
  town: string;
}

class Item {
  @IntegerProperty({ description: 'How many.', example: 2, minimum: 1, maximum: 99 })
  quantity: number;

  @DecimalProperty({ description: 'The price of one.', example: '12.50', precision: 8, scale: 2, minimum: '0' })
  price: string;
}

class CheckedOrder {
  @DateProperty({ description: 'When it is wanted.', example: '2026-02-28' })
  day: string;

  @DateTimeProperty({ description: 'When it was placed.', example: '2026-02-28T09:30:00Z' })
  placedAt: Date;

  @NumberProperty({ description: 'The weight in kg.', example: 12.5, precision: 6, scale: 3, minimum: '0' })
  weight: number;

  @BooleanProperty({ description: 'Whether it is a gift.', required: false, default: false })
  isGift = false;

  @TextProperty({ description: 'A remark.', nullable: true, minLength: 0, maxLength: 40 })
  remark: string | null;

  @ObjectProperty(() => Address, { description: 'Where it goes.', nullable: true })
  address: Address | null;

  @ArrayProperty({ description: 'What is ordered.', items: object(() => Item), minItems: 1, maxItems: 3 })
  items: Item[];

  @ArrayProperty({ description: 'Labels.', items: text({ minLength: 1, maxLength: 9 }), minItems: 0, maxItems: 2 })
  labels: string[];
}

class MixedCheckedOrder extends CheckedOrder {
  @IsOptional()
  @IsString()
  word?: string;
}

class Weight {
  @NumberProperty({ description: 'A weight.', precision: 6, scale: 3 })
  weight: number;
}

class CheckedOrderId {
  @Int64Parameter({ description: 'The order.', example: 7 })
  orderId: bigint;
}

class CheckedOrdersQuery {
  @ArrayProperty({
    description: 'With one of these labels.',
    required: false,
    items: text({ minLength: 1, maxLength: 9 }),
    minItems: 1,
    maxItems: 2,
  })
  label?: string[];
}

@Public()
@Controller('test-checked-orders')
class TestCheckedOrdersController {
  @Get()
  listCheckedOrders(@Query() { label = [] }: CheckedOrdersQuery): unknown {
    return { label };
  }

  @Get(':orderId')
  getCheckedOrder(@Param() { orderId }: CheckedOrderId): unknown {
    return { next: orderId + 1n };
  }

  @Post()
  @HttpCode(200)
  @ApiOkResponse({ type: CheckedOrder })
  addCheckedOrder(@Body() order: CheckedOrder): CheckedOrder {
    return order;
  }

  @Post('mixed')
  @HttpCode(200)
  addMixed(@Body() order: MixedCheckedOrder): unknown {
    return order;
  }

  @Post('weights')
  @HttpCode(200)
  addWeight(@Body() weight: Weight): unknown {
    return weight;
  }

  @Post('looked-at')
  @HttpCode(200)
  addLookedAt(@Body() weight: Weight): unknown {
    return weight;
  }

  @Post('parts')
  @HttpCode(200)
  addParts(@Body('weight') weight: Weight): unknown {
    return weight;
  }
}

@Module({ controllers: [TestCheckedOrdersController] })
class CheckedOrdersModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    const lookAtBody = (request: Request, _: unknown, next: () => void): void => {
      void request.body;
      next();
    };
    consumer.apply(lookAtBody).forRoutes('/v1/test-checked-orders/looked-at');
  }
}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [CheckedOrdersModule] });
});
afterAll(() => app.close());

const ORDER = {
  day: '2026-02-28',
  placedAt: '2026-02-28T10:30:00+01:00',
  weight: 12.5,
  isGift: true,
  remark: null,
  address: { town: 'Ulm' },
  items: [{ quantity: 2, price: '12.5' }],
  labels: ['a'],
};
const answer = {
  ...ORDER,
  placedAt: '2026-02-28T09:30:00.000Z',
  items: [{ quantity: 2, price: '12.50' }],
};

describe.each(['/v1/test-checked-orders', '/v1/test-checked-orders/mixed'])('%s', (path) => {
  const post = async (body: unknown): Promise<unknown> => {
    const { status, json } = await app.client.post(path, body);
    return status === 200 ? json : `${json.code}: ${json.message}`;
  };

  test('a handler gets the values that its class declares, and answers with them', async () => {
    expect(await post({ ...ORDER, more: [1], address: { town: 'Ulm', more: 1 } })).toEqual(answer);
    expect(await post({ ...ORDER, address: null })).toEqual({ ...answer, address: null });
  });

  test('400 names every fault by its path', async () => {
    const items = [ORDER.items[0], { quantity: 0, price: 12.5 }];
    const { weight, ...others } = ORDER;
    expect([weight, await post({ ...others, day: '2026-02-30', address: {}, items })]).toEqual([
      12.5,
      'validation_failed: day must be a date such as 2026-02-28; weight is required; address.town is required; ' +
        'items[1].quantity must be an integer between 1 and 99; ' +
        'items[1].price must be a decimal number as a JSON string, with up to 6 digits before and 2 behind the point, at least 0',
    ]);
  });

  test('a number that has more digits than a double keeps is refused, not rounded', async () => {
    const text = (weight: string): string => JSON.stringify(ORDER).replace('"weight":12.5', `"weight":${weight}`);
    const got = await post(text('12.500000000000000000'));
    expect(got).toEqual(answer);
    expect(await post(text('12.500000000000000001'))).toContain('validation_failed: weight must be a number');
    expect(await post(text('12.4999999999999999999'))).toContain('validation_failed: weight must be a number');
  });
});

test.each([
  ['/v1/test-checked-orders/weights', '{"weight":%}'],
  ['/v1/test-checked-orders/looked-at', '{"weight":%}'],
  ['/v1/test-checked-orders/parts', '{"weight":{"weight":%}}'],
])(
  'a number with more digits than a double keeps is refused, whichever way the body is read: %s',
  async (path, body) => {
    const post = async (weight: string): Promise<number> =>
      (await app.client.post(path, body.replace('%', weight))).status;
    expect([await post('1.25'), await post('1.250000000000000001')]).toEqual([200, 400]);
  },
);

test('parameters of a path and a query are converted to their declared types', async () => {
  expect((await app.client.get('/v1/test-checked-orders/9223372036854775806')).text).toBe(
    '{"next":9223372036854775807}',
  );
  expect((await app.client.get('/v1/test-checked-orders/x')).json).toMatchObject({
    code: 'bad_request',
    message: 'orderId must be an integer between -9223372036854775808 and 9223372036854775807',
  });
  expect((await app.client.get('/v1/test-checked-orders?label=a')).json).toEqual({ label: ['a'] });
  expect((await app.client.get('/v1/test-checked-orders?label=a&label=b')).json).toEqual({ label: ['a', 'b'] });
  expect((await app.client.get('/v1/test-checked-orders?label=a&label=b&label=c')).json.message).toBe(
    'label must be a JSON array of 1 to 2 items',
  );
});

test('the document has the schemas of decorated properties', async () => {
  type Operation = { parameters: object[]; requestBody: { content: { 'application/json': { example: unknown } } } };
  const { paths, components } = JSON.parse((await app.client.get('/openapi.json')).text) as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, object> };
  };
  expect(components.schemas['CheckedOrder']).toEqual({
    type: 'object',
    required: ['day', 'placedAt', 'weight', 'remark', 'address', 'items', 'labels'],
    properties: {
      day: { type: 'string', format: 'date', description: 'When it is wanted.', examples: ['2026-02-28'] },
      placedAt: {
        type: 'string',
        format: 'date-time',
        description: 'When it was placed.',
        examples: ['2026-02-28T09:30:00Z'],
      },
      weight: {
        type: 'number',
        format: 'double',
        multipleOf: 0.001,
        minimum: 0,
        maximum: 999.999,
        description: 'The weight in kg.',
        examples: [12.5],
      },
      isGift: { type: 'boolean', description: 'Whether it is a gift.', allOf: [{ default: false }] },
      remark: {
        type: ['string', 'null'],
        minLength: 0,
        maxLength: 40,
        pattern: '^[^\\x00]*$',
        description: 'A remark.',
      },
      address: {
        anyOf: [{ $ref: '#/components/schemas/Address' }, { type: 'null' }],
        description: 'Where it goes.',
      },
      items: {
        type: 'array',
        minItems: 1,
        maxItems: 3,
        items: { $ref: '#/components/schemas/Item' },
        description: 'What is ordered.',
      },
      labels: {
        type: 'array',
        minItems: 0,
        maxItems: 2,
        items: { type: 'string', minLength: 1, maxLength: 9, pattern: '^[^\\x00]*$' },
        description: 'Labels.',
      },
    },
  });
  expect(components.schemas['Item']).toMatchObject({
    properties: {
      quantity: { type: 'integer', format: 'int32', minimum: 1, maximum: 99 },
      price: { type: 'string', format: 'decimal', pattern: '^(0|[1-9][0-9]{0,5})(\\.[0-9]{1,2})?$' },
    },
  });
  expect(paths['/test-checked-orders/{orderId}']?.['get']?.parameters).toMatchObject([
    { name: 'orderId', in: 'path', required: true, example: 7, schema: { type: 'integer', format: 'int64' } },
  ]);
  expect(paths['/test-checked-orders']?.['get']?.parameters).toMatchObject([
    { name: 'label', in: 'query', required: false, schema: { type: 'array', items: { type: 'string' } } },
  ]);
});

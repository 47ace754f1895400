import { Body, Controller, Get, HttpCode, Module, Param, Post } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { ArrayMaxSize, IsISO8601, ValidateNested } from 'class-validator';
import { Public } from '../../src/platform/auth/public.decorator.js';
import {
  BooleanProperty,
  Int64Parameter,
  Int64Property,
  IntegerProperty,
  TextProperty,
} from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/*
 * Values of decorated properties from the request to the handler and back to the answer, and their schemas in the document:
 * the platform's decorators beside the rules of class-validator and nested classes.
 */

class Item {
  @Int64Property({ description: 'The article.', example: 7 })
  articleId: bigint;

  @IntegerProperty({ description: 'How many.', example: 2, minimum: 1, maximum: 99 })
  quantity: number;
}

class TestOrder {
  @IsISO8601({ strict: true })
  @ApiProperty({ description: 'When it is wanted.', format: 'date', example: '2026-02-28' })
  day: string;

  @BooleanProperty({ description: 'Whether it is a gift.', required: false, default: false })
  isGift = false;

  @TextProperty({ description: 'A remark.', nullable: true, minLength: 0, maxLength: 40 })
  remark: string | null;

  @ValidateNested({ each: true })
  @ArrayMaxSize(3)
  @Type(() => Item)
  @ApiProperty({ description: 'What is ordered.', type: [Item], maxItems: 3 })
  items: Item[];
}

class TestOrderId {
  @Int64Parameter({ description: 'The order.', example: 7 })
  orderId: bigint;
}

@Public()
@Controller('test-checked-orders')
class TestOrdersController {
  @Get(':orderId')
  getTestOrder(@Param() { orderId }: TestOrderId): unknown {
    return { next: orderId + 1n };
  }

  @Post()
  @HttpCode(200)
  addTestOrder(@Body() order: TestOrder): unknown {
    return { order, areItems: order.items.every((item) => item instanceof Item) };
  }
}

@Module({ controllers: [TestOrdersController] })
class TestOrdersModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [TestOrdersModule] });
});
afterAll(() => app.close());

const ORDER =
  '{"day":"2026-02-28","isGift":true,"remark":null,"items":[{"articleId":9223372036854775807,"quantity":2}]}';

test('a handler gets the values that its class declares, and answers with them', async () => {
  const sent = ORDER.replace('"quantity"', '"more":{"a":1},"quantity"').replace('"day"', '"more":[],"day"');
  const { status, text } = await app.client.post('/v1/test-checked-orders', sent);
  const order = ORDER.replace('"isGift":true,', '').replace('{', '{"isGift":true,');
  expect([status, text]).toEqual([200, `{"order":${order},"areItems":true}`]);
});

test('400 names every fault by its path', async () => {
  const items = [{ articleId: 1, quantity: 0 }, { articleId: '1' }];
  const { json } = await app.client.post('/v1/test-checked-orders', { day: '2026-02-30', remark: '', items });
  expect(json).toEqual({
    code: 'validation_failed',
    message:
      'day must be a valid ISO 8601 date string; items.0.quantity must be an integer between 1 and 99; ' +
      'items.1.articleId must be an integer between -9223372036854775808 and 9223372036854775807, ' +
      'sent as a JSON number, not a string; items.1.quantity is required',
    status: 400,
  });
});

test('parameters of a path are converted to their declared types', async () => {
  expect((await app.client.get('/v1/test-checked-orders/9223372036854775806')).text).toBe(
    '{"next":9223372036854775807}',
  );
  expect((await app.client.get('/v1/test-checked-orders/x')).json).toMatchObject({
    code: 'bad_request',
    message: 'orderId must be an integer between -9223372036854775808 and 9223372036854775807',
  });
});

test('the document has the schemas of decorated properties', async () => {
  const { paths, components } = JSON.parse((await app.client.get('/openapi.json')).text) as {
    paths: Record<string, Record<string, { parameters: object[] }>>;
    components: { schemas: Record<string, object> };
  };
  expect(components.schemas['TestOrder']).toEqual({
    type: 'object',
    required: ['day', 'remark', 'items'],
    properties: {
      day: { type: 'string', format: 'date', description: 'When it is wanted.', examples: ['2026-02-28'] },
      isGift: { type: 'boolean', description: 'Whether it is a gift.', allOf: [{ default: false }] },
      remark: {
        type: ['string', 'null'],
        minLength: 0,
        maxLength: 40,
        pattern: '^[^\\x00]*$',
        description: 'A remark.',
      },
      items: {
        type: 'array',
        maxItems: 3,
        items: { $ref: '#/components/schemas/Item' },
        description: 'What is ordered.',
      },
    },
  });
  expect(components.schemas['Item']).toMatchObject({
    properties: {
      articleId: { type: 'integer', format: 'int64' },
      quantity: { type: 'integer', format: 'int32', minimum: 1, maximum: 99 },
    },
  });
  expect(paths['/test-checked-orders/{orderId}']?.['get']?.parameters).toMatchObject([
    { name: 'orderId', in: 'path', required: true, example: 7, schema: { type: 'integer', format: 'int64' } },
  ]);
});

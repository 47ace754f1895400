import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpCode,
  type HttpServer,
  type INestApplication,
  Module,
  Param,
  Post,
  Query,
  Req,
} from '@nestjs/common';
import { PartialType } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsArray, IsEmail, IsInt, IsOptional, Min, ValidateNested } from 'class-validator';
import type { Request, Response } from 'express';
import {
  ApiError,
  BooleanProperty,
  EnumProperty,
  type Fault,
  FaultDetails,
  Int64Parameter,
  Int64Property,
  IntegerProperty,
  Public,
  TextProperty,
} from '#platform';
import { createTestApp, type TestApp } from '../support/app.js';

/* The faults of an input: on the exception for filters of modules, and as details where a handler sends them. */

const described = { description: 'Something.' };
const COLOURS = { enum: ['red', 'blue'], enumName: 'ToyColour', enumSchema: { description: 'A colour.' } };

class NewToy {
  @TextProperty({ ...described, minLength: 2, maxLength: 4, notBlank: true })
  name: string;

  @Int64Property({ ...described })
  makerId: bigint;

  @IntegerProperty({ ...described, minimum: 1, maximum: 9 })
  count: number;

  @BooleanProperty({ ...described, nullable: true })
  isNew: boolean | null;

  @EnumProperty({ ...described, ...COLOURS })
  colour: string;

  @TextProperty({
    ...described,
    isArray: true,
    minItems: 1,
    maxItems: 2,
    uniqueItems: true,
    minLength: 1,
    maxLength: 3,
  })
  tags: string[];
}

class Line {
  @Min(1, { message: 'Take at least one.', context: { translation: 'too-few', checked: true } })
  @IsInt()
  count: number;

  @IntegerProperty({ ...described, minimum: 0, maximum: 9 })
  price: number;
}

class NewOrder extends PartialType(NewToy) {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => Line)
  lines: Line[];

  @IsOptional()
  @IsEmail()
  email?: string;
}

class ToysQuery {
  @Int64Parameter({ ...described, required: false })
  makerId?: bigint;
}

class ToyPath {
  @Int64Parameter(described)
  toyId: bigint;
}

let seen: readonly Fault[] = [];

@Catch(ApiError)
class FaultsFilter implements ExceptionFilter<ApiError> {
  constructor(private readonly adapter: HttpServer) {}

  catch(error: ApiError, host: ArgumentsHost): void {
    seen = error.faults;
    this.adapter.reply(host.switchToHttp().getResponse<Response>(), error.getResponse(), error.getStatus());
  }
}

@Public()
@Controller('test-toys')
class TestToysController {
  @Post()
  @HttpCode(200)
  createToy(@Body() _toy: NewToy): void {}

  @Post('orders')
  @HttpCode(200)
  createOrder(@Body() _order: NewOrder): void {}

  @Post('wrapped')
  @HttpCode(200)
  createWrapped(@Body('toy') _toy: NewToy, @Body('order') _order: NewOrder): void {}

  @Get()
  listToys(@Query() _query: ToysQuery): void {}

  @Get(':toyId')
  getToy(@Param() _path: ToyPath): void {}

  @Post('raw')
  createRaw(@Req() request: Request): unknown {
    return request.body;
  }
}

@Public()
@FaultDetails()
@Controller('test-detailed-toys')
class TestDetailedToysController {
  @Post()
  createDetailedToy(@Body() _toy: NewToy): void {}

  @Post('orders')
  createDetailedOrder(@Body() _order: NewOrder): void {}

  @Post('raw')
  createDetailedRaw(@Req() request: Request): unknown {
    return request.body;
  }
}

@Module({ controllers: [TestToysController, TestDetailedToysController] })
class ToysModule {}

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

const TOY = { name: 'Rex', makerId: 1, count: 1, isNew: null, colour: 'red', tags: ['a'] };

/** The faults of a refused request, as `property rule`. */
async function faultsOf(path: string, body?: unknown): Promise<string[]> {
  seen = [];
  const { status, json } = await filtered.client.send(body === undefined ? 'GET' : 'POST', `/v1/test-toys${path}`, {
    body,
  });
  expect(status).toBe(400);
  expect(Object.keys(json as object)).toEqual(['code', 'message', 'status']);
  expect((json as { message: string }).message).toBe(seen.map(({ message }) => message).join('; '));
  return seen.map(({ property, rule }) => `${property} ${rule}`);
}

describe('a fault names its property and the keyword of JSON Schema', () => {
  test.each<[string, object, string]>([
    ['name', { name: 1 }, 'type'],
    ['name', { name: undefined }, 'required'],
    ['name', { name: 'a' }, 'minLength'],
    ['name', { name: 'abcde' }, 'maxLength'],
    ['name', { name: 'abcdefghijk' }, 'maxLength'],
    ['name', { name: '   ' }, 'pattern'],
    ['name', { name: 'a\0b' }, 'pattern'],
    ['makerId', { makerId: '1' }, 'type'],
    ['makerId', { makerId: 1.5 }, 'type'],
    ['makerId', { makerId: 2n ** 63n }, 'format'],
    ['count', { count: 0 }, 'minimum'],
    ['count', { count: 10 }, 'maximum'],
    ['count', { count: 1.5 }, 'type'],
    ['isNew', { isNew: 'yes' }, 'type'],
    ['colour', { colour: 'green' }, 'enum'],
    ['colour', { colour: null }, 'enum'],
    ['tags', { tags: 'a' }, 'type'],
    ['tags', { tags: [] }, 'minItems'],
    ['tags', { tags: ['a', 'b', 'c'] }, 'maxItems'],
    ['tags', { tags: ['a', 'a'] }, 'uniqueItems'],
    ['tags.1', { tags: ['a', ''] }, 'minLength'],
    ['tags.0', { tags: [7] }, 'type'],
  ])('%s of %j: %s', async (property, change, rule) => {
    const toy = { ...TOY, ...change };
    expect(await faultsOf('', toy)).toEqual([`${property} ${rule}`]);
    // The same in a class that goes through class-validator. There members of PartialType may be missing or null.
    if (rule !== 'required' && !Object.values(change).includes(null)) {
      expect(await faultsOf('/orders', { ...change, lines: [] })).toEqual([`${property} ${rule}`]);
    }
  });

  test('of several members in one body, of a member of a body, of a query and of a path', async () => {
    expect(await faultsOf('', { ...TOY, name: '', tags: [''], count: 0 })).toEqual([
      'name minLength',
      'count minimum',
      'tags.0 minLength',
    ]);
    const wrapped = { toy: { ...TOY, tags: ['', 'a'] }, order: { lines: [{}], colour: 'no' } };
    expect(await faultsOf('/wrapped', { ...wrapped, order: { lines: [] } })).toEqual(['toy.tags.0 minLength']);
    expect(await faultsOf('/wrapped', { ...wrapped, toy: TOY })).toEqual([
      'order.lines.0.count isInt',
      'order.lines.0.price required',
      'order.colour enum',
    ]);
    expect(await faultsOf('/wrapped', { toy: TOY })).toEqual(['order.lines isArray']);
    expect(await faultsOf('/wrapped', { toy: 7, order: { lines: [] } })).toEqual(['toy type']);
    expect(await faultsOf('', [])).toEqual([' type']);
    expect(await faultsOf('?makerId=x&colour=red')).toEqual(['colour additionalProperties']);
    expect(await faultsOf('?makerId=1&makerId=2')).toEqual(['makerId type']);
    expect(await faultsOf('?makerId=x')).toEqual(['makerId type']);
    expect(await faultsOf('/x')).toEqual(['toyId type']);
    expect(await faultsOf('/raw', { a: [{ b: 'x\0' }] })).toEqual(['a.0.b storable']);
  });

  test('of rules of class-validator: their names and contexts, one for each property, first that about the type', async () => {
    expect(await faultsOf('/orders', { lines: {}, email: 7 })).toEqual(['lines isArray', 'email isEmail']);
    expect(await faultsOf('/orders', { lines: null })).toEqual(['lines isArray']);
    expect(await faultsOf('/orders', { lines: [7] })).toEqual(['lines.0 nestedValidation']);
    expect(
      await faultsOf('/orders', {
        lines: [
          { count: 'x', price: 1 },
          { count: 0, price: 10 },
        ],
      }),
    ).toEqual(['lines.0.count isInt', 'lines.1.count min', 'lines.1.price maximum']);
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
  const name = {
    property: 'name',
    rule: 'maxLength',
    message: expect.stringMatching(/^name must be a string of/) as string,
  };

  test('sends the faults as details, also through a filter that responds with the Error body', async () => {
    for (const { client } of [app, filtered]) {
      const { json } = await client.post('/v1/test-detailed-toys', { ...TOY, name: 'too long' });
      expect(json).toEqual({ code: 'validation_failed', message: name.message, status: 400, details: [name] });
      const { json: order } = await client.post('/v1/test-detailed-toys/orders', { lines: [{ count: 0, price: 1 }] });
      expect(order).toMatchObject({ details: [{ property: 'lines.0.count', context: { translation: 'too-few' } }] });
      const { json: raw } = await client.post('/v1/test-detailed-toys/raw', { a: '\0' });
      expect(raw).toMatchObject({ details: [{ property: 'a', rule: 'storable' }] });
    }
  });

  test('leaves errors without faults, and all other operations, as they are', async () => {
    for (const [path, body] of [
      ['/v1/test-detailed-toys', '{'],
      ['/v1/test-toys', { ...TOY, name: 'too long' }],
      ['/v1/pets', { name: '' }],
    ] as const) {
      const { json } = await app.client.post(path, body);
      expect(Object.keys(json as object)).toEqual(['code', 'message', 'status']);
    }
  });

  test('is documented for its operations alone', async () => {
    const { json } = await app.client.get('/openapi.json');
    const document = json as {
      paths: Record<string, { post: { responses: object } }>;
      components: { schemas: object };
    };
    const details = { type: 'array', items: { $ref: '#/components/schemas/ErrorFault' } };
    expect(document.paths['/test-detailed-toys']?.post.responses).toMatchObject({
      400: { content: { 'application/json': { schema: { allOf: [{}, { properties: { details } }] } } } },
    });
    expect(document.components.schemas).toHaveProperty('ErrorFault.required', ['property', 'rule', 'message']);
    expect(JSON.stringify(document).match(/schemas\/ErrorFault"/g)).toHaveLength(2);
    const plain = await createTestApp();
    const own = (await plain.client.get('/openapi.json')).text;
    await plain.close();
    expect(own).not.toContain('ErrorFault');
  });
});

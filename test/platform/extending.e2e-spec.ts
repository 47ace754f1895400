import { Body, Controller, Get, Module, Param, Post, Query } from '@nestjs/common';
import { ApiNotFoundResponse, ApiProperty, ApiPropertyOptional, ApiServiceUnavailableResponse } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsEmail,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Length,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';
import { ApiKeysService } from '#access';
import { BooleanProperty, Int64Property, IntegerProperty, TextProperty } from '#input';
import { Public, RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpCall } from '../support/http-client.js';

/*
 * A module of another team, written as in any Nest application: it only imports decorators of the platform. The tests
 * check what the platform provides for it automatically.
 */

class Address {
  @IsString()
  @Length(2, 2)
  @ApiProperty({ description: 'Country.', example: 'DE' })
  country: string;

  @IntegerProperty({ description: 'Floor.', minimum: -9, maximum: 99 })
  floor: number;
}

class NewOwner {
  @IsString()
  @Length(1, 40)
  @ApiProperty({ description: 'Name.', example: 'Ann' })
  name: string;

  @IsEmail()
  @ApiProperty({ description: 'Address for mail.', example: 'ann@example.com' })
  email: string;

  @BooleanProperty({ description: 'Whether invoices are sent.', required: false })
  isBilled = false;

  @TextProperty({ description: 'A remark.', nullable: true, minLength: 0, maxLength: 40 })
  remark: string | null;

  @ValidateNested({ each: true })
  @ArrayMaxSize(2)
  @Type(() => Address)
  @ApiProperty({ description: 'Where the owner lives.', type: [Address], maxItems: 2 })
  addresses: Address[];

  @Int64Property({ description: 'Number of the customer.', example: 7 })
  customer: bigint;
}

class Owner extends NewOwner {
  @Int64Property({ description: 'Identifier.', example: 1 })
  id: bigint;
}

class ListOwnersQuery {
  @IsOptional()
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(50)
  @ApiPropertyOptional({ description: 'How many.', type: 'integer' })
  first?: number;

  @IsOptional()
  @IsIn(['name', 'id'])
  @ApiPropertyOptional({ description: 'Order.' })
  sort?: string;
}

const LARGEST = 9223372036854775807n;

@Controller('test-owners')
@RequireScopes()
class TestOwnersController {
  @Get()
  listOwners(@Query() query: ListOwnersQuery): unknown {
    return { first: query.first ?? null, sort: query.sort ?? null };
  }

  @Post()
  createOwner(@Body() owner: NewOwner): Owner {
    const areInstances = owner instanceof NewOwner && owner.addresses.every((one) => one instanceof Address);
    return { ...owner, id: areInstances ? LARGEST : 0n };
  }

  @Get(':name')
  @ApiNotFoundResponse({ description: 'Nobody has the name.', type: Address })
  @ApiServiceUnavailableResponse({ type: [String] })
  getOwner(@Param('name') name: string): unknown {
    return { name };
  }
}

@Public()
@Controller('test-gates')
class TestGatesController {
  @Get('open')
  findOpen(): void {}

  @Get('scoped')
  @RequireScopes('admin:write')
  findScoped(): void {}
}

@Module({ controllers: [TestOwnersController, TestGatesController] })
class OwnersModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [OwnersModule] });
});
afterAll(() => app.close());

const VALID = {
  name: 'Ann',
  email: 'ann@example.com',
  isBilled: true,
  remark: null,
  addresses: [{ country: 'DE', floor: 2 }],
  customer: LARGEST,
};
const errorOf = (code: string, status: number): object => ({ code, message: expect.any(String) as string, status });

describe('authentication', () => {
  test('@RequireScopes on a handler overrides @Public on its controller', async () => {
    const statusOf = async (path: string, call: HttpCall): Promise<number> =>
      (await app.client.get(`/v1/test-gates/${path}`, call)).status;
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'admin', scopes: ['admin:write'] });
    expect(await statusOf('open', { apiKey: null })).toBe(200);
    expect(await statusOf('scoped', { apiKey: null })).toBe(401);
    expect(await statusOf('scoped', {})).toBe(403);
    expect(await statusOf('scoped', { apiKey: secret })).toBe(200);
  });
});

describe('validation', () => {
  test('201: a valid body arrives as its classes, with exact int64, defaults, and without undeclared members', async () => {
    const { isBilled: _, ...sent } = { ...VALID, role: 'admin', addresses: [{ country: 'DE', floor: 2, planet: 3 }] };
    const answer = await app.client.post('/v1/test-owners', sent);
    expect([answer.status, answer.json]).toEqual([201, { ...VALID, isBilled: false, id: LARGEST }]);
    expect(answer.text).toContain('"customer":9223372036854775807');
  });

  test('200: a valid query is converted; 400 invalid_parameter otherwise', async () => {
    expect((await app.client.get('/v1/test-owners?first=50&sort=id')).json).toEqual({ first: 50, sort: 'id' });
    expect((await app.client.get('/v1/test-owners')).json).toEqual({ first: null, sort: null });
    for (const query of ['first=0', 'first=51', 'first=1.5', 'first=x', 'sort=age', 'sort=id&sort=id', 'page=2']) {
      expect((await app.client.get(`/v1/test-owners?${query}`)).json).toEqual(errorOf('invalid_parameter', 400));
    }
  });
});

describe('the document', () => {
  test('has the schemas of its properties, and the type that it declares for an error as the type of details', async () => {
    type Media = { content: { 'application/json': { schema: { allOf: object[] } } }; description: string };
    const { paths, components } = (await app.client.get('/openapi.json')).json as {
      paths: Record<string, Record<string, { responses: Record<string, Media> }>>;
      components: { schemas: Record<string, object> };
    };
    expect(components.schemas['NewOwner']).toMatchObject({
      required: ['name', 'email', 'remark', 'addresses', 'customer'],
      properties: {
        isBilled: { type: 'boolean', description: 'Whether invoices are sent.', allOf: [{ default: false }] },
        remark: { type: ['string', 'null'], minLength: 0, maxLength: 40, pattern: '^[^\\x00]*$' },
        addresses: { type: 'array', maxItems: 2, items: { $ref: '#/components/schemas/Address' } },
        customer: { type: 'integer', format: 'int64', examples: [7] },
      },
    });
    expect(components.schemas['Address']).toMatchObject({
      properties: { floor: { type: 'integer', format: 'int32', minimum: -9, maximum: 99 } },
    });
    const responses = paths['/test-owners/{name}']?.get?.responses ?? {};
    const schemaOf = (status: number): unknown => responses[status]?.content['application/json'].schema;
    const error = { $ref: '#/components/schemas/Error' };
    expect(responses[404]?.description).toBe('Nobody has the name.');
    expect(schemaOf(404)).toEqual({
      allOf: [error, { type: 'object', properties: { details: { $ref: '#/components/schemas/Address' } } }],
    });
    // The platform also returns 503, so its examples stay.
    expect(responses[503]?.content['application/json']).toMatchObject({ examples: { unavailable: {} } });
    expect(schemaOf(503)).toEqual({
      allOf: [error, { type: 'object', properties: { details: { type: 'array', items: { type: 'string' } } } }],
    });
  });
});

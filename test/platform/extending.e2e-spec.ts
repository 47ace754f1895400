import { Body, Controller, Get, HttpCode, Module, Param, Post, Query } from '@nestjs/common';
import { ApiNotFoundResponse, ApiProperty, ApiPropertyOptional, ApiServiceUnavailableResponse } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
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
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { RequireScopes } from '../../src/platform/auth/require-scopes.decorator.js';
import { Int64Property } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/*
 * A module of another team, written as in any Nest application: it only imports decorators of the platform. The tests
 * check what the platform provides for it automatically.
 */

class Address {
  @IsString()
  @Length(2, 2)
  @ApiProperty({ description: 'Country.', example: 'DE' })
  country: string;
}

class NewOwner {
  @IsString()
  @Length(1, 40)
  @ApiProperty({ description: 'Name.', example: 'Ann' })
  name: string;

  @IsEmail()
  @ApiProperty({ description: 'Address for mail.', example: 'ann@example.com' })
  email: string;

  @IsOptional()
  @IsArray()
  @ArrayMaxSize(2)
  @IsString({ each: true })
  @ApiPropertyOptional({ description: 'Words.', type: [String] })
  tags?: string[];

  @IsOptional()
  @ValidateNested()
  @Type(() => Address)
  @ApiPropertyOptional({ description: 'Home.' })
  address?: Address;

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
class TestOwnersController {
  @Get()
  listOwners(@Query() query: ListOwnersQuery): unknown {
    return { first: query.first ?? null, sort: query.sort ?? null };
  }

  @Post()
  createOwner(@Body() owner: NewOwner): Owner {
    return { ...owner, id: LARGEST };
  }

  @Get('open')
  @Public()
  readOpenly(): string[] {
    return ['open'];
  }

  @Post('audits')
  @RequireScopes('owners:audit')
  @HttpCode(200)
  auditOwners(): string[] {
    return ['audited'];
  }

  @Get(':name')
  @ApiNotFoundResponse({ description: 'Nobody has the name.', type: Address })
  @ApiServiceUnavailableResponse({ type: [String] })
  getOwner(@Param('name') name: string): unknown {
    return { name };
  }
}

@Module({ controllers: [TestOwnersController] })
class OwnersModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [OwnersModule] });
});
afterAll(() => app.close());

const VALID = { name: 'Ann', email: 'ann@example.com', customer: LARGEST };
const errorOf = (code: string, status: number): object => ({ code, message: expect.any(String) as string, status });

describe('authentication', () => {
  test.each([
    ['GET', '/v1/test-owners'],
    ['POST', '/v1/test-owners'],
    ['GET', '/v1/test-owners/ann'],
    ['POST', '/v1/test-owners/audits'],
  ])('401: %s %s needs a key by default', async (method, path) => {
    const body = method === 'POST' ? '{"not even JSON' : undefined;
    const answer = await app.client.send(method, path, { apiKey: null, body });
    expect(answer.json).toEqual(errorOf('missing_api_key', 401));
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="petstore"');
  });

  test('200: @Public opens one handler, and no other', async () => {
    expect((await app.client.get('/v1/test-owners/open', { apiKey: null })).json).toEqual(['open']);
  });

  test("403: @RequireScopes with the module's own scope; 200 with a key that has it", async () => {
    const refused = await app.client.post('/v1/test-owners/audits', undefined);
    expect(refused.json).toEqual(errorOf('insufficient_scope', 403));
    expect(refused.headers['www-authenticate']).toContain('error="insufficient_scope", scope="owners:audit"');
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'auditor', scopes: ['owners:audit'] });
    expect((await app.client.post('/v1/test-owners/audits', undefined, { apiKey: secret })).json).toEqual(['audited']);
  });
});

describe('validation', () => {
  test('201: a valid body arrives as its class, with exact int64 and without undeclared members', async () => {
    const answer = await app.client.post('/v1/test-owners', {
      ...VALID,
      address: { country: 'DE', planet: 3 },
      role: 'admin',
    });
    expect([answer.status, answer.json]).toEqual([201, { ...VALID, address: { country: 'DE' }, id: LARGEST }]);
    expect(answer.text).toContain('"customer":9223372036854775807');
  });

  test.each([
    [{ ...VALID, name: '' }, ['name']],
    [{ ...VALID, email: 'ann' }, ['email']],
    [{ ...VALID, tags: ['a', 'b', 'c'] }, ['tags']],
    [{ ...VALID, tags: [1] }, ['each']],
    [{ ...VALID, address: { country: 'Germany' } }, ['address.country']],
    [{ ...VALID, customer: 2n ** 63n }, ['customer']],
  ])('400 validation_failed: %j names every fault', async (body, words) => {
    const answer = await app.client.post('/v1/test-owners', body);
    expect(answer.json).toEqual(errorOf('validation_failed', 400));
    const clauses = (answer.json as { message: string }).message.split('; ');
    expect(clauses.map((clause) => clause.split(' ')[0])).toEqual(words);
  });

  test('200: a valid query is converted; 400 invalid_parameter otherwise', async () => {
    expect((await app.client.get('/v1/test-owners?first=50&sort=id')).json).toEqual({ first: 50, sort: 'id' });
    expect((await app.client.get('/v1/test-owners')).json).toEqual({ first: null, sort: null });
    for (const query of ['first=0', 'first=51', 'first=1.5', 'first=x', 'sort=age', 'sort=id&sort=id', 'page=2']) {
      expect((await app.client.get(`/v1/test-owners?${query}`)).json).toEqual(errorOf('invalid_parameter', 400));
    }
  });
});

describe('around it', () => {
  test('the type that it declares for an error becomes the type of details', async () => {
    type Media = { content: { 'application/json': { schema: { allOf: object[] } } }; description: string };
    const { paths } = (await app.client.get('/openapi.json')).json as {
      paths: Record<string, Record<string, { responses: Record<string, Media> }>>;
    };
    const responses = paths['/test-owners/{name}']?.get?.responses ?? {};
    const schemaOf = (status: number): unknown => responses[status]?.content['application/json'].schema;
    const error = { $ref: '#/components/schemas/Error' };
    expect(responses[404]?.description).toBe('Nobody has the name.');
    expect(schemaOf(404)).toEqual({
      allOf: [error, { type: 'object', properties: { details: { $ref: '#/components/schemas/Address' } } }],
    });
    // The platform also answers 503, so its examples stay.
    expect(responses[503]?.content['application/json']).toMatchObject({ examples: { unavailable: {} } });
    expect(schemaOf(503)).toEqual({
      allOf: [error, { type: 'object', properties: { details: { type: 'array', items: { type: 'string' } } } }],
    });
  });
});

import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  Body,
  type CanActivate,
  Controller,
  Delete,
  type ExecutionContext,
  Get,
  Headers,
  HttpException,
  Injectable,
  Module,
  Param,
  Patch,
  Post,
  RawBody,
  Res,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { OmitType as OtherOmitType, PartialType as OtherPartialType } from '@nestjs/mapped-types';
import { ApiHeader, OmitType, PartialType } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Matches } from 'class-validator';
import type { Request, Response } from 'express';
import { Counter } from 'prom-client';
import { Column, Entity, PrimaryGeneratedColumn, type QueryRunner, Repository } from 'typeorm';
import { defineConstraintErrors } from '#entities';
import { ApiError, defineError, FailsWith, PRECONDITION_FAILED } from '#errors';
import { Int64Parameter, Int64Property, IntegerProperty, TextProperty } from '#input';
import { Metrics, Readiness } from '#observability';
import { Public, RequireScopes } from '#operations';
import type { Migration } from '#postgres';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { until } from '../support/until.js';

/* The recipes of docs/extending.md: a conditional change, a metric and a check of a module, a signed body, constraints, a PATCH. */

const SECRET = 'shared with the partner';

@Entity('test_card')
class CardEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', primaryKeyConstraintName: 'pk_test_card' })
  id: string;

  @Column({ type: 'varchar', length: 40 })
  owner: string;

  @Column({ type: 'numeric', precision: 10, scale: 2 })
  points: string;

  @Column({ type: 'integer' })
  version: number;
}

class CreateCard1795600000000 implements Migration {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE test_card (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_test_card PRIMARY KEY,
        owner varchar(40) NOT NULL,
        points numeric(10, 2) NOT NULL,
        version integer NOT NULL
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE test_card');
  }
}

class Card {
  @TextProperty({ description: 'The owner.', minLength: 1, maxLength: 40 })
  owner: string;

  @Matches(/^\d{1,8}(\.\d{1,2})?$/)
  points: string;

  @IntegerProperty({ description: 'The version.', minimum: 1, maximum: 2_147_483_647 })
  version: number;
}

class CardChange extends PartialType(OmitType(Card, ['version']), { skipNullProperties: false }) {}

class NewEvent {
  @Int64Property({ description: 'The card.' })
  cardId: bigint;

  @Matches(/^\d{1,8}(\.\d{1,2})?$/)
  points: string;
}

class CardPath {
  @Int64Parameter({ description: 'The card.' })
  cardId: bigint;
}

const WRONG_SIGNATURE = defineError('wrong_signature', 401, 'The body has another signature.');

let askPartner: () => unknown = () => undefined;

@Injectable()
class CardsService {
  private readonly changes: Counter;

  constructor(
    @InjectRepository(CardEntity) private readonly cards: Repository<CardEntity>,
    metrics: Metrics,
    readiness: Readiness,
  ) {
    readiness.add('partner', () => askPartner());
    this.changes = new Counter({
      name: 'petstore_test_card_changes_total',
      help: 'Changes of loyalty cards.',
      registers: [metrics.registry],
    });
  }

  async get(id: bigint): Promise<CardEntity> {
    return this.cards.findOneByOrFail({ id: String(id) });
  }

  /** @throws ApiError PRECONDITION_FAILED */
  async change(id: bigint, tag: string | undefined, change: CardChange): Promise<CardEntity> {
    const [, version] = /^"([1-9]\d{0,8})"$/.exec(tag ?? '') ?? [];
    if (version === undefined) throw new ApiError(PRECONDITION_FAILED, 'If-Match must be the ETag of the card.');
    const { affected } = await this.cards.update(
      { id: String(id), version: Number(version) },
      { ...change, version: Number(version) + 1 },
    );
    if (affected !== 1) throw new ApiError(PRECONDITION_FAILED, 'The card has changed since it was read.');
    this.changes.inc();
    return this.get(id);
  }

  async take({ cardId, points }: NewEvent): Promise<void> {
    await this.cards.query('UPDATE test_card SET points = points + $2 WHERE id = $1', [String(cardId), points]);
  }
}

@Controller('test-cards')
class CardsController {
  constructor(private readonly cards: CardsService) {}

  @Get(':cardId')
  @RequireScopes('cards:read')
  async getCard(@Param() { cardId }: CardPath, @Res({ passthrough: true }) response: Response): Promise<Card> {
    const card = await this.cards.get(cardId);
    response.setHeader('ETag', `"${card.version}"`);
    return card;
  }

  @Patch(':cardId')
  @RequireScopes('cards:write')
  @ApiHeader({ name: 'If-Match', required: true, description: 'The `ETag` of the card as it was read.' })
  @FailsWith(PRECONDITION_FAILED)
  async changeCard(
    @Param() { cardId }: CardPath,
    @Headers('if-match') tag: string | undefined,
    @Body() change: CardChange,
    @Res({ passthrough: true }) response: Response,
  ): Promise<Card> {
    const card = await this.cards.change(cardId, tag, change);
    response.setHeader('ETag', `"${card.version}"`);
    return card;
  }

  @Post('events')
  @Public()
  @FailsWith(WRONG_SIGNATURE)
  takeEvent(
    @Headers('x-signature') signature: string | undefined,
    @RawBody() bytes: Buffer,
    @Body() event: NewEvent,
  ): Promise<void> {
    const expected = createHmac('sha256', SECRET).update(bytes).digest();
    const given = Buffer.from(signature ?? '', 'hex');
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new ApiError(WRONG_SIGNATURE);
    return this.cards.take(event);
  }
}

/** What `ThrottlerModule.forRoot` of @nestjs/throttler takes. */
const THROTTLERS = {
  throttlers: [{ ttl: 60_000, limit: 100 }],
  skipIf: (context: ExecutionContext) => context.switchToHttp().getRequest<Request>().path.startsWith('/health/'),
};

/** Refuses everything, as that package's guard does after `limit` requests. */
class LimitGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (limited && !THROTTLERS.skipIf(context)) throw new HttpException('ThrottlerException: Too Many Requests', 429);
    return true;
  }
}

@Module({
  imports: [TypeOrmModule.forFeature([CardEntity])],
  controllers: [CardsController],
  providers: [CardsService, { provide: APP_GUARD, useClass: LimitGuard }],
})
class CardsModule {}

let limited = false;
@Entity('test_category')
class CategoryEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', primaryKeyConstraintName: 'pk_test_category' })
  id: string;

  @Column({ type: 'varchar', length: 40 })
  name: string;

  @Column({ type: 'varchar', length: 40, nullable: true })
  note: string | null;

  @Column({ name: 'parent_id', type: 'bigint', nullable: true })
  parentId: string | null;
}

class CreateCategory1795600000001 implements Migration {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE test_category (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_test_category PRIMARY KEY,
        name varchar(40) NOT NULL CONSTRAINT uq_category_name UNIQUE,
        note varchar(40),
        parent_id bigint CONSTRAINT fk_category_parent REFERENCES test_category
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE test_category');
  }
}

class NewCategory {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 })
  name: string;

  @TextProperty({ description: 'A note.', minLength: 1, maxLength: 40, nullable: true })
  note: string | null;

  @Int64Property({ description: 'The parent.', required: false })
  parentId?: bigint;
}

class CategoryChange extends PartialType(OmitType(NewCategory, ['parentId']), { skipNullProperties: false }) {}

class OtherCategoryChange extends OtherPartialType(OtherOmitType(NewCategory, ['parentId']), {
  skipNullProperties: false,
}) {}

const CATEGORY_NOT_FOUND = defineError('category_not_found', 404, 'No category has this identifier.');
const CATEGORY_EXISTS = defineError('category_exists', 409, 'A category has this name.');
const NO_PARENT = defineError('no_parent', 422, 'The parent of the category does not exist.');
const CATEGORY_IN_USE = defineError('category_in_use', 409, 'The category is the parent of others.');

defineConstraintErrors(CategoryEntity, {
  uq_category_name: CATEGORY_EXISTS,
  fk_category_parent: { missing: NO_PARENT, referenced: CATEGORY_IN_USE },
});

class CategoryPath {
  @Int64Parameter({ description: 'The category.' })
  categoryId: bigint;
}

@Injectable()
class CategoriesService {
  constructor(@InjectRepository(CategoryEntity) private readonly categories: Repository<CategoryEntity>) {}

  async create({ parentId, ...others }: NewCategory): Promise<CategoryEntity> {
    return this.categories.save({ ...others, parentId: parentId?.toString() ?? null });
  }

  async change(id: bigint, change: CategoryChange): Promise<CategoryEntity> {
    const found = await this.categories.findOneBy({ id: String(id) });
    if (found === null) throw new ApiError(CATEGORY_NOT_FOUND);
    return this.categories.save(this.categories.merge(found, change));
  }

  async delete(id: bigint): Promise<void> {
    await this.categories.delete({ id: String(id) });
  }
}

@Controller('test-categories')
@RequireScopes('cards:write')
class CategoriesController {
  constructor(private readonly categories: CategoriesService) {}

  @Post()
  @FailsWith(CATEGORY_EXISTS, NO_PARENT)
  createCategory(@Body() category: NewCategory): Promise<CategoryEntity> {
    return this.categories.create(category);
  }

  @Patch(':categoryId')
  changeCategory(@Param() { categoryId }: CategoryPath, @Body() change: CategoryChange): Promise<CategoryEntity> {
    return this.categories.change(categoryId, change);
  }

  @Patch(':categoryId/other')
  changeOther(@Param() { categoryId }: CategoryPath, @Body() change: OtherCategoryChange): Promise<CategoryEntity> {
    return this.categories.change(categoryId, change);
  }

  @Delete(':categoryId')
  deleteCategory(@Param() { categoryId }: CategoryPath): Promise<void> {
    return this.categories.delete(categoryId);
  }
}

@Module({
  imports: [TypeOrmModule.forFeature([CategoryEntity])],
  controllers: [CategoriesController],
  providers: [CategoriesService],
})
class CategoriesModule {}

let app: TestApp;
let apiKey: string;
beforeAll(async () => {
  app = await createTestApp({
    features: [CardsModule, CategoriesModule],
    migrations: [CreateCard1795600000000, CreateCategory1795600000001],
  });
  apiKey = await app.createApiKey('cards:read', 'cards:write', 'metrics:read');
});
afterAll(() => app.close());

test('If-Match: one of two changes of the same version succeeds, and the other is refused', async () => {
  await app.sql(`INSERT INTO test_card (owner, points, version) VALUES ('Ann', 1, 1)`);
  const read = await app.client.get('/v1/test-cards/1', { apiKey });
  expect([read.status, read.headers.etag]).toEqual([200, '"1"']);
  const change = (body: object, headers: Record<string, string>): Promise<HttpAnswer> =>
    app.client.send('PATCH', '/v1/test-cards/1', { apiKey, body, headers });
  const tag = { 'if-match': read.headers.etag ?? '' };
  const both = await Promise.all([change({ points: '2.5' }, tag), change({ points: '2.5' }, tag)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 412]);
  expect(both.find(({ status }) => status === 200)).toMatchObject({
    headers: { etag: '"2"' },
    json: { points: '2.50' },
  });
  expect((await change({ points: '3' }, {})).json).toMatchObject({ code: 'precondition_failed', status: 412 });
  for (const body of [{ owner: null }, { points: null }]) {
    expect([body, (await change(body, { 'if-match': '"2"' })).status]).toEqual([body, 400]);
  }
  const again = await app.client.get('/v1/test-cards/1', { apiKey, headers: { 'if-none-match': '"2"' } });
  expect(again.status).toBe(304);
  expect((await app.client.get('/metrics', { apiKey })).text).toContain('petstore_test_card_changes_total 1\n');
});

test('a unique name, a missing parent and a parent in use have the errors of the feature', async () => {
  const create = async (body: object): Promise<unknown> =>
    (await app.client.post('/v1/test-categories', { note: null, ...body }, { apiKey })).json;
  const { id } = (await create({ name: 'birds' })) as { id: string };
  expect(await create({ name: 'birds' })).toMatchObject({ code: 'category_exists', status: 409 });
  expect(await create({ name: 'owls', parentId: 4242 })).toMatchObject({ code: 'no_parent', status: 422 });
  expect(await create({ name: 'owls', parentId: Number(id) })).toMatchObject({ name: 'owls' });
  const deleted = await app.client.send('DELETE', `/v1/test-categories/${id}`, { apiKey });
  expect(deleted.json).toMatchObject({ code: 'category_in_use', status: 409 });
  const errors = (await app.client.get('/openapi.json')).json as { paths: Record<string, { post: object }> };
  expect(JSON.stringify(errors.paths['/test-categories']?.post)).toContain('components/examples/category_exists');
});

test.each(['', '/other'])('a PATCH changes what was sent, and null is 400 unless nullable: %j', async (other) => {
  const name = `cats${other}`;
  const created = await app.client.post('/v1/test-categories', { name, note: 'soft' }, { apiKey });
  const path = `/v1/test-categories/${(created.json as { id: string }).id}${other}`;
  const change = async (body: object): Promise<unknown> =>
    (await app.client.send('PATCH', path, { apiKey, body })).json;
  expect(await change({ name: null })).toMatchObject({ code: 'validation_failed', status: 400 });
  expect(await change({ name: 'x'.repeat(41) })).toMatchObject({ code: 'validation_failed', status: 400 });
  expect(await change({})).toMatchObject({ name, note: 'soft' });
  expect(await change({ note: null })).toMatchObject({ name, note: null });
  expect(await change({ name: `new ${name}` })).toMatchObject({ name: `new ${name}`, note: null });
  const unknown = await app.client.send('PATCH', '/v1/test-categories/4242', { apiKey, body: { note: null } });
  expect(unknown.json).toMatchObject({ code: 'category_not_found', status: 404 });
});

test('a signed body is accepted unchanged, and a changed one is refused', async () => {
  await app.sql(`INSERT INTO test_card (owner, points, version) VALUES ('Bob', 0.1, 1)`);
  const body = '{"cardId": 2,\n "points": "0.20"}';
  const sign = (text: string): string => createHmac('sha256', SECRET).update(text).digest('hex');
  const send = (signature: string): Promise<HttpAnswer> =>
    app.client.send('POST', '/v1/test-cards/events', { apiKey: null, body, headers: { 'x-signature': signature } });
  expect((await send(sign(JSON.stringify(JSON.parse(body))))).json).toMatchObject({ code: 'wrong_signature' });
  expect((await send(sign(body))).status).toBe(201);
  expect((await app.client.get('/v1/test-cards/2', { apiKey })).json).toMatchObject({ points: '0.30' });
});

test.each<[string, () => unknown]>([
  ['no route to the partner', () => Promise.reject(new Error('no route to the partner'))],
  ['not ended after 1 s', () => new Promise(() => undefined)],
])('a check of a module makes the process unready, and the log says why: %s', async (why, ask) => {
  askPartner = ask;
  const refused = await until(async () => {
    const answer = await app.client.get('/health/ready');
    return answer.status === 503 && answer;
  });
  expect(refused.json).toEqual({ code: 'unavailable', message: "The check 'partner' fails.", status: 503 });
  expect(JSON.stringify(app.log.lines)).toContain(why);
  askPartner = () => undefined;
  await until(async () => (await app.client.get('/health/ready')).status === 200);
});

test('a check runs once a second at most, however often anybody asks', async () => {
  const times: number[] = [];
  askPartner = () => times.push(performance.now());
  for (let count = 0; count < 100; count++) await app.client.get('/health/ready');
  for (const [index, time] of times.slice(1).entries()) expect(time - (times[index] as number)).toBeGreaterThan(900);
});

test("429: a module's own limit, of which health checks are spared", async () => {
  limited = true;
  const statusOf = async (path: string): Promise<number> => (await app.client.get(path)).status;
  const paths = ['/v1/pets', '/docs', '/health/live', '/health/ready'];
  expect(await Promise.all(paths.map(statusOf))).toEqual([429, 429, 200, 200]);
  limited = false;
});

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
  type MessageEvent,
  Module,
  Param,
  Patch,
  Post,
  Query,
  RawBody,
  Res,
  Sse,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ApiConsumes, ApiHeader, ApiOperation, ApiProperty, OmitType, PartialType } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Type } from 'class-transformer';
import { ArrayMaxSize, IsObject, Matches, ValidateNested } from 'class-validator';
import type { Request, Response } from 'express';
import { Counter } from 'prom-client';
import { Column, Entity, PrimaryGeneratedColumn, Repository } from 'typeorm';
import { map, type Observable, Subject } from 'rxjs';
import {
  ApiError,
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  defineConstraintErrors,
  defineError,
  Deprecated,
  FailsWith,
  Int64Parameter,
  Int64Property,
  int64Of,
  IntegerProperty,
  Keyset,
  LimitParameter,
  Metrics,
  OpaqueParameter,
  type Page,
  Paged,
  PRECONDITION_FAILED,
  Public,
  Readiness,
  RequireScopes,
  SharedRepository,
  TextProperty,
} from '#platform';
import { CreateVisit1795300000000 } from '../example/visits/1795300000000-create-visit.js';
import { VisitsModule } from '../example/visits/visits.module.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';
import { until } from '../support/until.js';

/* The samples of docs/extending.md. `repository/documentation` compares the page with this file. */

const SECRET = 'shared with the partner';

@Entity('test_card')
class CardEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column({ type: 'varchar', length: 40 }) owner: string;
  @Column({ type: 'numeric', precision: 10, scale: 2 }) points: string;
  @Column({ type: 'integer' }) version: number;
}

const CREATE_CARD = `CREATE TABLE test_card (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner varchar(40) NOT NULL, points numeric(10, 2) NOT NULL, version integer NOT NULL)`;

class Card {
  @TextProperty({ description: 'The owner.', minLength: 1, maxLength: 40 }) owner: string;
  @Matches(/^\d{1,8}(\.\d{1,2})?$/) points: string;
  @IntegerProperty({ description: 'The version.', minimum: 1, maximum: 2_147_483_647 }) version: number;
}

class CardChange extends PartialType(OmitType(Card, ['version']), { skipNullProperties: false }) {}

class NewEvent {
  @Int64Property({ description: 'The card.' }) cardId: bigint;
  @Matches(/^\d{1,8}(\.\d{1,2})?$/) points: string;
}

class CardPath {
  @Int64Parameter({ description: 'The card.' }) cardId: bigint;
}

const WRONG_SIGNATURE = defineError('wrong_signature', 401, 'The body has another signature.');

let askPartner: () => unknown = () => undefined;

@Injectable()
class CardsService {
  private readonly changes: Counter;

  constructor(
    @InjectRepository(CardEntity) private readonly cards: Repository<CardEntity>,
    { registry }: Metrics,
    readiness: Readiness,
  ) {
    readiness.add('partner', () => askPartner());
    const name = 'petstore_test_card_changes_total';
    this.changes = new Counter({ name, help: 'Changes of loyalty cards.', registers: [registry] });
  }

  get(id: bigint): Promise<CardEntity> {
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
const limitGuard: CanActivate = {
  canActivate(context) {
    if (limited && !THROTTLERS.skipIf(context)) throw new HttpException('ThrottlerException: Too Many Requests', 429);
    return true;
  },
};

@Module({
  imports: [TypeOrmModule.forFeature([CardEntity])],
  controllers: [CardsController],
  providers: [CardsService, { provide: APP_GUARD, useValue: limitGuard }],
})
class CardsModule {}

let limited = false;
@Entity('test_toy')
class ToyEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column({ type: 'varchar', length: 40 }) name: string;
  @Column({ type: 'varchar', length: 40, nullable: true }) note: string | null;
  @Column({ name: 'bundle_id', type: 'bigint', nullable: true }) bundleId: string | null;
}

const CREATE_TOY = `CREATE TABLE test_toy (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name varchar(40) NOT NULL CONSTRAINT uq_test_toy_name UNIQUE,
  note varchar(40),
  bundle_id bigint CONSTRAINT fk_test_toy_bundle REFERENCES test_toy)`;

class NewToy {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 }) name: string;
  @TextProperty({ description: 'A note.', minLength: 1, maxLength: 40, nullable: true }) note: string | null;
  @Int64Property({ description: 'The bundle.', required: false }) bundleId?: bigint;
}

class NewToys {
  @ApiProperty({ type: [NewToy], maxItems: 100 })
  @ArrayMaxSize(100)
  @IsObject({ each: true })
  @ValidateNested({ each: true })
  @Type(() => NewToy)
  toys: NewToy[];
}

class ToyChange extends PartialType(OmitType(NewToy, ['bundleId']), { skipNullProperties: false }) {}

const TOY_NOT_FOUND = defineError('test_toy_not_found', 404, 'No toy has this identifier.');
const TOY_EXISTS = defineError('test_toy_exists', 409, 'A toy has this name.');
const NO_BUNDLE = defineError('test_no_bundle', 422, 'The bundle of the toy does not exist.');
const BUNDLE_IN_USE = defineError('test_bundle_in_use', 409, 'The bundle has toys.');

defineConstraintErrors(ToyEntity, {
  uq_test_toy_name: TOY_EXISTS,
  fk_test_toy_bundle: { missing: NO_BUNDLE, referenced: BUNDLE_IN_USE },
});

class ToyPath {
  @Int64Parameter({ description: 'The toy.' }) toyId: bigint;
}

class Toy {
  @Int64Property({ description: 'Its id.' }) id: bigint;
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 }) name: string;
  @TextProperty({ description: 'A note.', minLength: 1, maxLength: 40, nullable: true }) note: string | null;
}

const toToy = ({ id, name, note }: ToyEntity): Toy => Object.assign(new Toy(), { id: int64Of(id), name, note });

class ListToysQuery {
  @LimitParameter('Most toys.') limit = DEFAULT_PAGE_SIZE;
  @CursorParameter('Start of the page.') cursor?: string;
  @OpaqueParameter({ description: 'Return only toys with this name.', required: false }) name?: string;
}

class Tagged {
  @TextProperty({ description: 'Tags.', isArray: true, maxItems: 9, uniqueItems: true, minLength: 1, maxLength: 20 })
  tags: string[];
}

const ORDER = new Keyset({ name: 'ASC', id: 'ASC' });

@Injectable()
class ToysRepository extends SharedRepository<ToyEntity, Toy> {
  constructor(@InjectRepository(ToyEntity) toys: Repository<ToyEntity>) {
    super(toys, toToy, { name: 'ASC' });
  }

  list(query: ListToysQuery): Promise<Page<Toy>> {
    return this.page(query, { name: query.name });
  }

  async change(id: bigint, change: ToyChange): Promise<Toy | undefined> {
    const found = await this.repository.findOneBy({ id: String(id) });
    return found ? toToy(await this.repository.save(this.repository.merge(found, change))) : undefined;
  }

  async listByQuery(query: ListToysQuery): Promise<Page<Toy>> {
    const filters = { name: query.name };
    const start = ORDER.decode(query.cursor, filters);
    const found = this.repository.createQueryBuilder('toy').orderBy({ name: 'ASC', id: 'ASC' });
    if (start) found.where('(name, id) > (:name, :id)', start);
    const rows = (await found.take(query.limit + 1).getMany()).map(toToy);
    return ORDER.page(rows, query, filters);
  }
}

export const TOY_SOLD = defineError('test_toy_sold', 409, 'The toy is sold.');

@Injectable()
class ToysService {
  readonly added = new Subject<Toy>();

  constructor(
    @InjectRepository(ToyEntity) private readonly toys: Repository<ToyEntity>,
    private readonly repository: ToysRepository,
  ) {}

  async create({ bundleId, ...others }: NewToy): Promise<ToyEntity> {
    const created = await this.toys.save({ ...others, bundleId: bundleId?.toString() ?? null });
    this.added.next(toToy(created));
    return created;
  }

  async addAll(names: string[]): Promise<void> {
    await this.toys.insert(names.map((name) => ({ name })));
  }

  async change(id: bigint, change: ToyChange): Promise<Toy> {
    const changed = await this.repository.change(id, change);
    if (!changed) throw new ApiError(TOY_NOT_FOUND);
    return changed;
  }

  async delete(id: bigint): Promise<void> {
    await this.toys.delete({ id: String(id) });
  }
}

@Controller('test-toys')
@RequireScopes('toys:read')
class TestToysController {
  constructor(
    private readonly toys: ToysService,
    private readonly repository: ToysRepository,
  ) {}

  @Get()
  @Paged(Toy, 'A page of toys.')
  listToys(@Query() query: ListToysQuery): Promise<Page<Toy>> {
    return this.repository.list(query);
  }

  @Get('old')
  @Deprecated({
    since: '2026-11-01T00:00:00Z',
    sunset: '2027-11-01T00:00:00Z',
    successor: '/toys',
    replacement: 'Call listToys.',
  })
  readOld(): void {}

  @Get('by-query')
  @Paged(Toy, 'A page of toys.')
  listToysByQuery(@Query() query: ListToysQuery): Promise<Page<Toy>> {
    return this.repository.listByQuery(query);
  }

  @Sse('events')
  @RequireScopes('toys:read')
  @ApiOperation({ summary: 'Stream toys', description: 'Added toys.' })
  sendEvents(): Observable<MessageEvent> {
    return this.toys.added.pipe(map((toy) => ({ type: 'added', data: toy })));
  }

  @Post()
  @FailsWith(TOY_EXISTS, NO_BUNDLE)
  createToy(@Body() toy: NewToy): Promise<ToyEntity> {
    return this.toys.create(toy);
  }

  @Post('names')
  @ApiConsumes('text/plain')
  addToys(@Body() names: string): Promise<void> {
    return this.toys.addAll(names.split('\n'));
  }

  @Post('bulk')
  checkToys(@Body() { toys }: NewToys): string[] {
    return toys.map((toy) => `${toy.name} ${toy instanceof NewToy}`);
  }

  @Post('tags')
  addTags(@Body() { tags }: Tagged): string[] {
    return tags;
  }

  @Post('sale')
  @FailsWith(TOY_SOLD)
  sellToy(): void {
    throw new ApiError(TOY_SOLD, 'Toy 7 is sold.', {}, { details: { toyId: 7 } });
  }

  @Patch(':toyId')
  changeToy(@Param() { toyId }: ToyPath, @Body() change: ToyChange): Promise<Toy> {
    return this.toys.change(toyId, change);
  }

  @Delete(':toyId')
  deleteToy(@Param() { toyId }: ToyPath): Promise<void> {
    return this.toys.delete(toyId);
  }
}

@Module({
  imports: [TypeOrmModule.forFeature([ToyEntity])],
  controllers: [TestToysController],
  providers: [ToysService, ToysRepository],
})
class ToysModule {}

const SCOPES = ['visits:read', 'visits:write', 'cards:read', 'cards:write', 'toys:read', 'metrics:read'] as const;

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [CardsModule, ToysModule, VisitsModule], defaultScopes: SCOPES });
  for (const statement of [CREATE_CARD, CREATE_TOY]) await app.sql(statement);
  await app.migrate(new CreateVisit1795300000000());
});
afterAll(() => app.close());

test('If-Match: one of two changes of the same version succeeds, and the other is refused', async () => {
  await app.sql(`INSERT INTO test_card (owner, points, version) VALUES ('Ann', 1, 1)`);
  const read = await app.client.get('/v1/test-cards/1');
  expect([read.status, read.headers.etag]).toEqual([200, '"1"']);
  const change = (body: object, headers: Record<string, string>): Promise<HttpAnswer> =>
    app.client.send('PATCH', '/v1/test-cards/1', { body, headers });
  const tag = { 'if-match': read.headers.etag ?? '' };
  const both = await Promise.all([change({ points: '2.5' }, tag), change({ points: '2.5' }, tag)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 412]);
  const changed = { headers: { etag: '"2"' }, json: { points: '2.50' } };
  expect(both.find(({ status }) => status === 200)).toMatchObject(changed);
  expect((await change({ points: '3' }, {})).json).toMatchObject({ code: 'precondition_failed', status: 412 });
  for (const body of [{ owner: null }, { points: null }]) {
    expect([body, (await change(body, { 'if-match': '"2"' })).status]).toEqual([body, 400]);
  }
  const again = await app.client.get('/v1/test-cards/1', { headers: { 'if-none-match': '"2"' } });
  expect(again.status).toBe(304);
  expect((await app.client.get('/metrics')).text).toContain('petstore_test_card_changes_total 1\n');
});

test('a unique name, a missing bundle and a bundle in use have the errors of the feature', async () => {
  const create = async (body: object): Promise<unknown> =>
    (await app.client.post('/v1/test-toys', { note: null, ...body })).json;
  const { id } = (await create({ name: 'balls' })) as { id: string };
  expect(await create({ name: 'balls' })).toMatchObject({ code: 'test_toy_exists', status: 409 });
  expect(await create({ name: 'kites', bundleId: 4242 })).toMatchObject({ code: 'test_no_bundle', status: 422 });
  expect(await create({ name: 'kites', bundleId: Number(id) })).toMatchObject({ name: 'kites' });
  const deleted = await app.client.send('DELETE', `/v1/test-toys/${id}`);
  expect(deleted.json).toMatchObject({ code: 'test_bundle_in_use', status: 409 });
  const { paths } = (await app.client.get('/openapi.json')).json;
  expect(JSON.stringify(paths['/test-toys'].post)).toContain('components/examples/test_toy_exists');
});

test('a PATCH changes what was sent, and null is 400 unless nullable', async () => {
  const name = 'cars';
  const created = await app.client.post('/v1/test-toys', { name, note: 'soft' });
  const path = `/v1/test-toys/${created.json.id}`;
  const change = async (body: object): Promise<unknown> => (await app.client.send('PATCH', path, { body })).json;
  expect(await change({ name: null })).toMatchObject({ code: 'validation_failed', status: 400 });
  expect(await change({ name: 'x'.repeat(41) })).toMatchObject({ code: 'validation_failed', status: 400 });
  expect(await change({})).toMatchObject({ name, note: 'soft' });
  expect(await change({ note: null })).toMatchObject({ name, note: null });
  expect(await change({ name: `new ${name}` })).toMatchObject({ name: `new ${name}`, note: null });
  const unknown = await app.client.send('PATCH', '/v1/test-toys/4242', { body: { note: null } });
  expect(unknown.json).toMatchObject({ code: 'test_toy_not_found', status: 404 });
});

test('a list by name, of a repository and of a query of its own, and of one name', async () => {
  const headers = { 'content-type': 'text/plain' };
  const sent = await app.client.send('POST', '/v1/test-toys/names', { headers, body: 'zebra\nabacus' });
  expect(sent.status).toBe(201);
  const namesOf = (answer: HttpAnswer): string[] => (answer.json as Toy[]).map(({ name }) => name);
  for (const path of ['/v1/test-toys', '/v1/test-toys/by-query']) {
    const listed: string[] = [];
    for (let next: string | undefined = `${path}?limit=2`; next !== undefined;) {
      const page: HttpAnswer = await app.client.get(next);
      listed.push(...namesOf(page));
      next = /<[^>]*?(\/v1\/[^>]*)>; rel="next"/.exec(String(page.headers.link))?.[1];
    }
    expect([path, listed[0], listed.at(-1)]).toEqual([path, 'abacus', 'zebra']);
    expect(listed).toEqual([...new Set(listed)]);
  }
  expect(namesOf(await app.client.get('/v1/test-toys?name=zebra'))).toEqual(['zebra']);
});

test('a stream sends the toys that are added', async () => {
  const abort = new AbortController();
  const response = await fetch(`${app.origin}/v1/test-toys/events`, {
    headers: { authorization: `Bearer ${app.apiKey}` },
    signal: abort.signal,
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const { json } = await app.client.post('/v1/test-toys', { name: 'drum', note: null });
  let text = '';
  while (!text.includes('drum')) text += Buffer.from((await reader.read()).value ?? []).toString();
  abort.abort();
  expect(text).toContain(`event: added`);
  expect(text).toContain(`data: {"id":${json.id},"name":"drum","note":null}`);
});

test('an error with details, and a list with the rules of its items', async () => {
  const sold = { code: 'test_toy_sold', message: 'Toy 7 is sold.', status: 409, details: { toyId: 7 } };
  expect((await app.client.post('/v1/test-toys/sale', undefined)).json).toEqual(sold);
  const tag = async (tags: unknown): Promise<number> => (await app.client.post('/v1/test-toys/tags', { tags })).status;
  expect([await tag(['new', 'red']), await tag(['new', 'new'])]).toEqual([201, 400]);
});

test('an array in a class is validated item by item, and documented', async () => {
  const send = async (body: unknown): Promise<unknown> => {
    const { status, json } = await app.client.post('/v1/test-toys/bulk', body);
    return status === 201 ? json : [status, json.message];
  };
  const toy = { name: 'top', note: null };
  expect(await send({ toys: [toy, toy] })).toEqual(['top true', 'top true']);
  expect(await send({ toys: [toy, { note: null }] })).toEqual([400, 'toys.1.name is required']);
  const wrong = [{}, { toys: null }, { toys: toy }, { toys: [null] }, { toys: [1] }, { toys: [[toy]] }, [toy]];
  for (const body of [...wrong, { toys: Array.from({ length: 101 }, () => toy) }]) {
    expect([body, await send(body)]).toEqual([body, [400, expect.any(String)]]);
  }
  const { components } = (await app.client.get('/openapi.json')).json;
  expect(components.schemas.NewToys).toMatchObject({ properties: { toys: { type: 'array', maxItems: 100 } } });
});

test('a signed body is accepted unchanged, and a changed one is refused', async () => {
  await app.sql(`INSERT INTO test_card (owner, points, version) VALUES ('Bob', 0.1, 1)`);
  const body = '{"cardId": 2,\n "points": "0.20"}';
  const sign = (text: string): string => createHmac('sha256', SECRET).update(text).digest('hex');
  const send = (signature: string): Promise<HttpAnswer> =>
    app.client.send('POST', '/v1/test-cards/events', { apiKey: null, body, headers: { 'x-signature': signature } });
  expect((await send(sign(JSON.stringify(JSON.parse(body))))).json).toMatchObject({ code: 'wrong_signature' });
  expect((await send(sign(body))).status).toBe(201);
  expect((await app.client.get('/v1/test-cards/2')).json).toMatchObject({ points: '0.30' });
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
  const asked = import.meta.jest.fn();
  askPartner = asked;
  const now = performance.now();
  const clock = import.meta.jest.spyOn(performance, 'now');
  for (const later of [1_000, 1_999, 2_000]) {
    clock.mockReturnValue(now + later);
    for (let count = 0; count < 10; count++) await app.client.get('/health/ready');
    expect(asked).toHaveBeenCalledTimes(later < 2_000 ? 1 : 2);
  }
  clock.mockRestore();
});

test("429: a module's own limit, of which health checks are spared", async () => {
  limited = true;
  const statusOf = async (path: string): Promise<number> => (await app.client.get(path)).status;
  const paths = ['/v1/test-toys', '/docs', '/health/live', '/health/ready'];
  expect(await Promise.all(paths.map(statusOf))).toEqual([429, 429, 200, 200]);
  limited = false;
});

/* The module of `test/example`. */

// Its weight is beyond the largest number of single precision.
const visit = { petId: 9223372036854775807n, reason: 'BMI|30', weightKg: 1e40 };

test('201: a visit is stored and listed, for a key with the scopes of the module', async () => {
  const created = await app.client.post('/v1/visits', visit);
  expect([created.status, created.json]).toEqual([201, { id: 1, ...visit }]);
  await app.client.post('/v1/visits', visit);
  const list = await app.client.get('/v1/visits?reason=BMI|30&limit=1');
  expect([list.status, list.json]).toEqual([200, [created.json]]);
  expect(list.headers['link']).toMatch(/\/v1\/visits\?limit=1&reason=BMI%7C30&cursor=[\w-]+>; rel="next"$/);
  const apiKey = await app.createApiKey({ scopes: ['cards:read'] });
  const refused = await app.client.get('/v1/visits', { apiKey });
  expect(refused.json).toMatchObject({ code: 'insufficient_scope', status: 403 });
});

test("409 visits_full: the module's own error", async () => {
  for (let count = 0; count < 3; count++) await app.client.post('/v1/visits', { ...visit, petId: 1 });
  const { json } = await app.client.post('/v1/visits', { ...visit, petId: 1 });
  expect(json).toEqual({ code: 'visits_full', message: 'A pet may have 3 visits.', status: 409 });
});

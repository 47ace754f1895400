import { Controller, Get, Module, Query } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Transform, Type } from 'class-transformer';
import { IsArray, IsDate, IsOptional } from 'class-validator';
import { Column, Entity, ManyToOne, OneToMany, PrimaryColumn, Repository } from 'typeorm';
import { Int64Parameter } from '#input';
import { ArraySchema, CursorParameter, Keyset, LimitParameter, type Page, Paged } from '#resources';
import { Public } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* A paged list of a module, with filters; each row has several related rows. */

@Entity('test_keeper')
class Keeper {
  @PrimaryColumn({ type: 'bigint' })
  id: string;

  @Column({ name: 'full_name', type: 'varchar', length: 40 })
  fullName: string;

  @OneToMany(() => Kept, ({ keeper }) => keeper)
  kept: Kept[];
}

@Entity('test_kept')
class Kept {
  @PrimaryColumn({ type: 'bigint' })
  id: string;

  @ManyToOne(() => Keeper, ({ kept }) => kept)
  keeper: Keeper;
}

const ORDER = new Keyset('id');

class ListQuery {
  @LimitParameter('Maximum number.', 50)
  limit = 5;

  @Int64Parameter({ description: 'The smallest id.', required: false })
  from?: bigint;

  @IsOptional()
  @IsDate()
  @Type(() => Date)
  at?: Date;

  @IsOptional()
  @IsArray()
  @Transform(({ value }: { value: unknown }) => (value === undefined ? undefined : [value].flat()))
  name?: string[];

  @CursorParameter('Start of the page.')
  cursor?: string;
}

@Public()
@Controller('test-keepers')
class TestKeepersController {
  constructor(@InjectRepository(Keeper) private readonly keepers: Repository<Keeper>) {}

  @Get()
  @Paged(Object, 'A page of keepers.')
  async listKeepers(@Query() query: ListQuery): Promise<Page<Keeper>> {
    const { from, at, name } = query;
    const keepers = this.keepers.createQueryBuilder('k').leftJoinAndSelect('k.kept', 'kept');
    if (from !== undefined) keepers.andWhere('k.id >= :from', { from });
    if (name !== undefined) keepers.andWhere('k.fullName IN (:...name)', { name });
    const after = ORDER.decode(query.cursor, { from, at, name });
    if (after !== undefined) keepers.andWhere('k.id > :after', { after });
    const found = await keepers
      .orderBy('k.id')
      .take(query.limit + 1)
      .getMany();
    return ORDER.page(found, query, { from, at, name });
  }
}

class TestKept {
  @Int64Parameter({ description: 'Its id.' })
  id: bigint;
}

@ArraySchema(TestKept, 'A page.', 9)
class TestKepts {}

const TOTAL = { 'X-Total-Count': { description: 'All of them.' } };

@Public()
@Controller('test-totals')
class TestTotalsController {
  @Get('above')
  @ApiOkResponse({ headers: TOTAL })
  @Paged(TestKepts, 'A page.')
  listAbove(): void {}

  @Get('below')
  @Paged(TestKepts, 'A page.')
  @ApiOkResponse({ headers: TOTAL })
  listBelow(): void {}
}

@Module({
  imports: [TypeOrmModule.forFeature([Keeper, Kept])],
  controllers: [TestKeepersController, TestTotalsController],
})
class KeepersModule {}

const NAMES = ['Zoe', 'Ann', 'Bob', 'Özil', 'Zoe', 'Ann', 'Zoe'];

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [KeepersModule] });
  await app.sql(`CREATE TABLE test_keeper (id bigint PRIMARY KEY, full_name varchar(40) NOT NULL)`);
  await app.sql(`CREATE TABLE test_kept (id bigint PRIMARY KEY, "keeperId" bigint REFERENCES test_keeper)`);
  for (const [index, name] of NAMES.entries()) {
    await app.sql('INSERT INTO test_keeper VALUES ($1, $2)', [9007199254740990n + BigInt(index * 7), name]);
  }
  await app.sql(`INSERT INTO test_kept SELECT row_number() OVER (), id FROM test_keeper, generate_series(1, 3)`);
});
afterAll(() => app.close());

const namesOf = ({ json }: HttpAnswer): string[] => (json as unknown as Keeper[]).map(({ fullName }) => fullName);

test.each([2, 7])('pages of %i rows have every row once, in order, with all related rows', async (limit) => {
  const found: string[] = [];
  for (let path: string | undefined = `/v1/test-keepers?limit=${limit}`; path !== undefined;) {
    const answer = await app.client.get(path);
    found.push(...namesOf(answer));
    for (const { kept } of answer.json as unknown as Keeper[]) expect(kept).toHaveLength(3);
    path = /^<http:\/\/localhost:3000([^>]+)>; rel="next"$/.exec(String(answer.headers['link']))?.[1];
    if (path !== undefined) expect(answer.json).toHaveLength(limit);
  }
  expect(found).toEqual(NAMES);
});

test('a cursor is accepted only with its own filters, in any order', async () => {
  const from = 'from=9007199254740990';
  const names = 'name=Ann&name=Zoe';
  const at = 'at=2026-02-28T09:30:00%2B01:00';
  const read = (query: string): Promise<HttpAnswer> => app.client.get(`/v1/test-keepers?${query}`);
  const first = await read(`limit=3&${from}&${names}&${at}`);
  expect(namesOf(first)).toEqual(['Zoe', 'Ann', 'Zoe']);
  const cursor = /[?&]cursor=([^&>]+)/.exec(String(first.headers['link']))?.[1];
  const next = await read(`cursor=${cursor}&${names}&at=2026-02-28T08:30:00Z&${from}`);
  expect([namesOf(next), next.headers['link']]).toEqual([['Ann', 'Zoe'], undefined]);
  for (const query of [`${at}&${names}`, `${at}&name=Ann&${from}`, `${names}&${from}&at=2026-02-28T09:30:00Z`]) {
    expect((await read(`cursor=${cursor}&${query}`)).json).toMatchObject({
      code: 'invalid_cursor',
      message: 'cursor was made with other filters; send the same ones as on the first page',
    });
  }
});

test('a list has its own default and largest page, and the document says so', async () => {
  expect(namesOf(await app.client.get('/v1/test-keepers'))).toHaveLength(5);
  expect((await app.client.get('/v1/test-keepers?limit=50')).status).toBe(200);
  expect((await app.client.get('/v1/test-keepers?limit=51')).json['message']).toBe(
    'limit must be an integer between 1 and 50',
  );
  const { paths } = (await app.client.get('/openapi.json')).json as { paths: Record<string, { get: object }> };
  expect(paths['/test-keepers']?.get).toMatchObject({
    parameters: expect.arrayContaining([
      expect.objectContaining({
        name: 'limit',
        schema: expect.objectContaining({ default: 5, maximum: 50 }) as object,
      }),
    ]) as object,
  });
  expect(() => LimitParameter('Maximum number.', 101)).toThrow('A page has at most 100 items, not 101.');
});

test.each(['above', 'below'])('@ApiOkResponse({ headers }) %s @Paged adds header fields', async (place) => {
  const { paths } = (await app.client.get('/openapi.json')).json as { paths: Record<string, { get: object }> };
  expect(paths[`/test-totals/${place}`]?.get).toMatchObject({
    responses: {
      200: {
        description: 'A page.',
        headers: { ...TOTAL, Link: { $ref: '#/components/headers/NextPage' } },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/TestKepts' } } },
      },
    },
  });
});

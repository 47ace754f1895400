import { Controller, Get, Module, Param, Query } from '@nestjs/common';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, ManyToOne, OneToMany, PrimaryColumn, Repository } from 'typeorm';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { Database } from '../../src/platform/database/database.js';
import { text } from '../../src/platform/input/properties/values.js';
import { ArrayProperty, DateTimeProperty, Int64Parameter } from '../../src/platform/input/property.decorators.js';
import { Keyset, type Page } from '../../src/platform/paging/keyset.js';
import {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  LimitParameter,
  Paged,
} from '../../src/platform/paging/paging.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/*
 * A paged list of a module, ordered by two columns, one of which is not a number; each row has several related rows.
 */

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

const ORDER = new Keyset({ fullName: { maxLength: 40 }, id: 'int64' });
const LATEST_FIRST = new Keyset({ id: 'int64' }, 'descending');

class ListQuery {
  @LimitParameter('Maximum number.')
  limit = DEFAULT_PAGE_SIZE;

  @CursorParameter(ORDER, 'Where the page begins.')
  cursor?: string;
}

class FilteredQuery {
  @LimitParameter('Maximum number.')
  limit = DEFAULT_PAGE_SIZE;

  @Int64Parameter({ description: 'The smallest id.', required: false })
  from?: bigint;

  @DateTimeProperty({ description: 'When it was kept.', required: false })
  at?: Date;

  @ArrayProperty({
    description: 'Names.',
    required: false,
    items: text({ minLength: 1, maxLength: 40 }),
    minItems: 1,
    maxItems: 5,
  })
  name?: string[];

  @CursorParameter(LATEST_FIRST, 'Where the page begins.')
  cursor?: string;
}

@Public()
@Controller('test-keepers')
class TestKeepersController {
  constructor(
    @InjectRepository(Keeper) private readonly keepers: Repository<Keeper>,
    private readonly database: Database,
  ) {}

  @Get()
  @Paged(Object, 'A page of keepers.')
  listKeepers(@Query() query: ListQuery): Promise<Page<Keeper>> {
    return ORDER.read(this.keepers.createQueryBuilder('k').leftJoinAndSelect('k.kept', 'kept'), query, {});
  }

  @Get('latest')
  @Paged(Object, 'A page of keepers, the latest first.')
  listLatest(@Query() query: FilteredQuery): Promise<Page<Keeper>> {
    const { from, at, name } = query;
    const keepers = this.keepers.createQueryBuilder('k').leftJoinAndSelect('k.kept', 'kept');
    if (from !== undefined) keepers.andWhere('k.id >= :from', { from });
    if (name !== undefined) keepers.andWhere('k.fullName IN (:...name)', { name });
    return LATEST_FIRST.read(keepers, query, { from, at, name });
  }

  @Get('latest-by-sql')
  @Paged(Object, 'A page of keepers, the latest first.')
  async listLatestBySql(@Query() query: FilteredQuery): Promise<Page<{ id: string; fullName: string }>> {
    const { from, at, name } = query;
    const before = LATEST_FIRST.decode(query.cursor, { from, at, name });
    const rows = await this.database.readReplica((manager) =>
      manager.query<{ id: string; fullName: string }[]>(
        `SELECT id, full_name AS "fullName" FROM test_keeper
         WHERE ($1::bigint IS NULL OR id >= $1) AND ($2::text[] IS NULL OR full_name = ANY ($2))
           AND ($3::bigint IS NULL OR id < $3)
         ORDER BY id DESC LIMIT $4`,
        [from, name, before?.id, query.limit + 1],
      ),
    );
    return LATEST_FIRST.page(rows, query, { from, at, name });
  }

  @Get('bugs/:bug')
  @Paged(Object, 'A page of keepers.')
  listWithBug(@Param('bug') bug: string, @Query() query: ListQuery): Promise<Page<Keeper>> {
    const keepers = this.keepers.createQueryBuilder('k').leftJoinAndSelect('k.kept', 'kept');
    const bugs: Record<string, () => unknown> = {
      order: () => keepers.orderBy('k.id'),
      'order of a relation': () => keepers.orderBy('kept.id'),
      take: () => keepers.take(7),
      limit: () => keepers.limit(7),
      skip: () => keepers.skip(7),
      offset: () => keepers.offset(7),
    };
    bugs[bug]?.();
    return ORDER.read(keepers, query, {});
  }
}

@Module({ imports: [TypeOrmModule.forFeature([Keeper, Kept])], controllers: [TestKeepersController] })
class KeepersModule {}

const NAMES = ['Ann', 'Ann', 'Bob', 'Özil', 'Zoe', 'Zoe', 'Zoe'];

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [KeepersModule] });
  await app.sql(`CREATE TABLE test_keeper (id bigint PRIMARY KEY, full_name varchar(40) COLLATE "C" NOT NULL)`);
  await app.sql(`CREATE TABLE test_kept (id bigint PRIMARY KEY, "keeperId" bigint REFERENCES test_keeper)`);
  for (const [index, name] of NAMES.entries()) {
    await app.sql('INSERT INTO test_keeper VALUES ($1, $2)', [9007199254740990n + BigInt(index * 7), name]);
  }
  await app.sql(`INSERT INTO test_kept SELECT row_number() OVER (), id FROM test_keeper, generate_series(1, 3)`);
});
afterAll(() => app.close());

test.each([1, 2, 3, 6, 7, 20])(
  'pages of %i rows have every row once, in order, with all related rows',
  async (limit) => {
    const found: string[] = [];
    for (let path: string | undefined = `/v1/test-keepers?limit=${limit}`; path !== undefined;) {
      const { json, headers } = await app.client.get(path);
      const page = json as unknown as Keeper[];
      expect(page.length).toBeLessThanOrEqual(limit);
      for (const { fullName, id, kept } of page) {
        found.push(`${fullName} ${id}`);
        expect(kept).toHaveLength(3);
      }
      path = /^<http:\/\/localhost:3000([^>]+)>; rel="next"$/.exec(String(headers['link']))?.[1];
      if (path !== undefined) expect(page).toHaveLength(limit);
    }
    const rows = await app.sql('SELECT full_name, id::text FROM test_keeper ORDER BY full_name, id');
    expect(found).toEqual(rows.map((row) => row.join(' ')));
  },
);

test.each(['order', 'order of a relation', 'take', 'limit', 'skip', 'offset'])(
  'a query with its own %s is a bug, and the log says so',
  async (bug) => {
    const logged = app.log.lines.length;
    expect((await app.client.get(`/v1/test-keepers/bugs/${bug}`, { expects500: true })).status).toBe(500);
    expect(JSON.stringify(app.log.lines.slice(logged))).toContain('has no order and no limit of its own');
  },
);

describe.each(['latest', 'latest-by-sql'])('the latest first, with filters: %s', (path) => {
  const read = (query: string): Promise<HttpAnswer> => app.client.get(`/v1/test-keepers/${path}?${query}`);
  const namesOf = ({ json }: HttpAnswer): string[] => (json as unknown as Keeper[]).map(({ fullName }) => fullName);
  const cursorOf = ({ headers }: HttpAnswer): string =>
    /[?&]cursor=([^&>]+)[^>]*>; rel="next"$/.exec(String(headers['link']))?.[1] ?? '';

  test('pages have every row once, from the last to the first', async () => {
    const first = await read('limit=4');
    expect(namesOf(first)).toEqual(['Zoe', 'Zoe', 'Zoe', 'Özil']);
    const second = await read(`limit=4&cursor=${cursorOf(first)}`);
    expect([namesOf(second), second.headers['link']]).toEqual([['Bob', 'Ann', 'Ann'], undefined]);
  });

  test('a cursor is accepted only with its own filters, in any order', async () => {
    const from = 'from=9007199254740997';
    const names = 'name=Ann&name=Zoe';
    const at = 'at=2026-02-28T09:30:00%2B01:00';
    const first = await read(`limit=2&${from}&${names}&${at}`);
    expect(namesOf(first)).toEqual(['Zoe', 'Zoe']);
    const cursor = cursorOf(first);
    for (const query of [`${at}&${names}&${from}`, `${names}&at=2026-02-28T08:30:00Z&${from}`]) {
      const next = await read(`cursor=${cursor}&${query}&limit=2`);
      expect([namesOf(next), next.headers['link']]).toEqual([['Zoe', 'Ann'], undefined]);
    }
    for (const query of [`${at}&${names}`, `${at}&name=Ann&${from}`, `${names}&${from}&at=2026-02-28T09:30:00Z`]) {
      expect((await read(`cursor=${cursor}&${query}&limit=2`)).json).toMatchObject({
        code: 'invalid_cursor',
        message: 'cursor belongs to a list with other filters; send from, at, name as they were when it was made',
      });
    }
  });
});

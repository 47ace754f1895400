import { Controller, Get, Module, Query } from '@nestjs/common';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, ManyToOne, OneToMany, PrimaryColumn, Repository } from 'typeorm';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { Keyset, type Page } from '../../src/platform/paging/keyset.js';
import {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  LimitParameter,
  Paged,
} from '../../src/platform/paging/paging.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/*
 * A list of a module, in pages: two columns of which one is no number, and a relation with several rows each.
 */

@Entity('keeper')
class Keeper {
  @PrimaryColumn({ type: 'bigint' })
  id: string;

  @Column({ name: 'full_name', type: 'varchar', length: 40 })
  fullName: string;

  @OneToMany(() => Kept, ({ keeper }) => keeper)
  kept: Kept[];
}

@Entity('kept')
class Kept {
  @PrimaryColumn({ type: 'bigint' })
  id: string;

  @ManyToOne(() => Keeper, ({ kept }) => kept)
  keeper: Keeper;
}

const ORDER = new Keyset({ fullName: { maxLength: 40 }, id: 'int64' });

class ListQuery {
  @LimitParameter('Maximum number.')
  limit = DEFAULT_PAGE_SIZE;

  @CursorParameter(ORDER, 'Where the page begins.')
  cursor?: string;
}

@Public()
@Controller('keepers')
class KeepersController {
  constructor(@InjectRepository(Keeper) private readonly keepers: Repository<Keeper>) {}

  @Get()
  @Paged(Object, 'A page of keepers.')
  listKeepers(@Query() query: ListQuery): Promise<Page<Keeper>> {
    return ORDER.read(this.keepers.createQueryBuilder('k').leftJoinAndSelect('k.kept', 'kept'), query, {});
  }

  @Get('ordered')
  @Paged(Object, 'A page of keepers.')
  listOrdered(@Query() query: ListQuery): Promise<Page<Keeper>> {
    return ORDER.read(this.keepers.createQueryBuilder('k').orderBy('k.id'), query, {});
  }
}

@Module({ imports: [TypeOrmModule.forFeature([Keeper, Kept])], controllers: [KeepersController] })
class KeepersModule {}

const NAMES = ['Ann', 'Ann', 'Bob', 'Özil', 'Zoe', 'Zoe', 'Zoe'];

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ modules: [KeepersModule] });
  await app.sql(`CREATE TABLE keeper (id bigint PRIMARY KEY, full_name varchar(40) COLLATE "C" NOT NULL)`);
  await app.sql(`CREATE TABLE kept (id bigint PRIMARY KEY, "keeperId" bigint REFERENCES keeper)`);
  for (const [index, name] of NAMES.entries()) {
    await app.sql('INSERT INTO keeper VALUES ($1, $2)', [9007199254740990n + BigInt(index * 7), name]);
  }
  await app.sql(`INSERT INTO kept SELECT row_number() OVER (), id FROM keeper, generate_series(1, 3)`);
});
afterAll(() => app.close());

test.each([1, 2, 3, 6, 7, 20])('every row once and in order, %i on a page, with all of its relation', async (limit) => {
  const found: string[] = [];
  for (let path: string | undefined = `/v1/keepers?limit=${limit}`; path !== undefined;) {
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
  const rows = await app.sql('SELECT full_name, id::text FROM keeper ORDER BY full_name, id');
  expect(found).toEqual(rows.map((row) => row.join(' ')));
});

test('a query with an order of its own is a bug, and the log says so', async () => {
  expect((await app.client.get('/v1/keepers/ordered')).status).toBe(500);
  expect(JSON.stringify(app.log)).toContain('has no order and no limit of its own');
});

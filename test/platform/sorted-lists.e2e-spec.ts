import { Controller, Get, Injectable, Module, Query } from '@nestjs/common';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import {
  AfterLoad,
  Column,
  DataSource,
  Entity,
  Index,
  PrimaryGeneratedColumn,
  type QueryRunner,
  Repository,
} from 'typeorm';
import {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  Keyset,
  LimitParameter,
  type OrderBy,
  type Page,
  Paged,
  SharedRepository,
} from '#entities';
import { OpaqueParameter } from '#input';
import { int64Of } from '#json';
import { Public } from '#operations';
import { Database } from '#postgres';
import { EntityStatements } from '../../libs/entities/src/entity-statements.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import type { HttpAnswer } from '../support/http-client.js';
import { setDefaults } from '../support/hostile-settings.js';

/* Lists of a feature that are sorted by several columns, in shared statements and by TypeORM, against the order of PostgreSQL. */

const MOODS = ['calm', 'wild', 'sly'] as const;

@Entity('test_toy')
@Index(['name', 'id'])
@Index(['mood', 'name', 'id'])
@Index(['madeAt', 'id'])
class Toy {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' })
  id: string;

  @Column({ type: 'varchar', length: 60 })
  name: string;

  /** With a collation whose comparison ignores case, where the engine has ICU. */
  @Column({ type: 'varchar', length: 60 })
  title: string;

  /** With a German collation, where the engine has ICU. */
  @Column({ type: 'varchar', length: 60 })
  german: string;

  @Column({ name: 'made_at', type: 'timestamp with time zone' })
  madeAt: Date;

  @Column({ name: 'local_at', type: 'timestamp without time zone' })
  localAt: Date;

  @Column({ name: 'on_day', type: 'date' })
  day: string;

  @Column({ type: 'numeric', precision: 30, scale: 10 })
  price: string;

  @Column({ type: 'integer' })
  size: number;

  @Column({ type: 'uuid' })
  code: string;

  @Column({ name: 'is_new', type: 'boolean' })
  isNew: boolean;

  @Column({ type: 'enum', enum: MOODS, enumName: 'test_mood' })
  mood: string;
}

/** The same rows, each read by a statement of TypeORM, because the entity has a listener. */
@Entity('test_toy')
class HeardToy extends Toy {
  @AfterLoad()
  hear(): void {}
}

const ORDERS = {
  newest: { id: 'DESC' },
  name: { name: 'ASC' },
  nameDown: { name: 'DESC', id: 'DESC' },
  title: { title: 'ASC' },
  german: { german: 'ASC', id: 'ASC' },
  made: { madeAt: 'DESC', id: 'DESC' },
  local: { localAt: 'ASC', id: 'ASC' },
  day: { day: 'DESC' },
  price: { price: 'ASC', id: 'ASC' },
  many: { isNew: 'DESC', mood: 'DESC', size: 'DESC', price: 'DESC', id: 'DESC' },
  code: { code: 'DESC', id: 'DESC' },
} as const satisfies Record<string, OrderBy<keyof Toy>>;
type OrderName = keyof typeof ORDERS;

/** Cursors of the last release, behind the 60th row of a list, and behind the fourth with the mood sly. */
const RELEASED: Partial<Record<OrderName, readonly [cursor: string, sly: string]>> = {
  newest: ['AwAAAABdntXzAAI3MUxQEks', 'A8M8pURdntXzAAMxMTl2AaZ_'],
  name: ['AwAAAAC1MZuLAANadWcAAzEyN3Ih6Aw', 'A8M8pUS1MZuLAAEgAAMxMjKUbnME'],
  nameDown: ['AwAAAABGnqpYAApiYWNrXHNsYXNoAAEzn9UMzw', 'A8M8pURGnqpYAAPvv78AAzExM03JEjw'],
  made: ['AwAAAABso7UaABExNzc0NzMwNzAwLjAwMDAwMAADMTIzQQEcUg', 'A8M8pURso7UaAAhJbmZpbml0eQACMjDLSSsx'],
  local: ['AwAAAACj3W9RAAktMC4wMDAwMDEAAzEyOKkoPNw', 'A8M8pUSj3W9RAAktSW5maW5pdHkAAzEwNLP8YX4'],
  day: ['AwAAAAB7TkcaAAoxNzc0NjU2MDAwAAMxMTj94mDu', 'A8M8pUR7TkcaAAhJbmZpbml0eQACMTT3aK7t'],
  price: ['AwAAAAD30FfPAAwwLjUwMDAwMDAwMDAAAjM4QZWFiw', 'A8M8pUT30FfPAA0tMC4wMDAwMDAwMDAxAAI1Nq6BJwI'],
  many: [
    'AwAAAADiWr4UAAR0cnVlAARjYWxtAAEwAAwwLjAwMDAwMDAwMDAAAjMwIS6Jkg',
    'A8M8pUTiWr4UAAR0cnVlAANzbHkAATIAA05hTgACMTT9z6WK',
  ],
  code: [
    'AwAAAABY_bmsACRhNTc3MWJjZS05M2UyLTAwYzMtNmY3Yy1kOWRmZDBlNWRlYWEAAjc4sWHbWg',
    'A8M8pURY_bmsACRlMzY5ODUzZC1mNzY2LWZhNDQtZTFlZC0wZmY2MTNmNTYzYmQAAjc0A1oddg',
  ],
};

class Item {
  id: bigint;
}

@Injectable()
class Lists {
  readonly byOrder: Readonly<Record<string, SharedRepository<Toy, Item>>>;

  constructor(
    @InjectRepository(Toy) toys: Repository<Toy>,
    @InjectRepository(HeardToy) heard: Repository<Toy>,
    database: Database,
  ) {
    const toItem = ({ id }: Toy): Item => Object.assign(new Item(), { id: int64Of(id) });
    const lists = Object.entries<OrderBy<keyof Toy>>(ORDERS).flatMap(([name, order]) => [
      [name, new SharedRepository(toys, toItem, order)],
      [`${name} heard`, new SharedRepository(heard, toItem, order)],
    ]);
    this.byOrder = Object.fromEntries(lists) as Lists['byOrder'];
    for (const list of Object.values(this.byOrder)) Object.assign(list, { database });
  }
}

class ListQuery {
  @LimitParameter('Maximum number.')
  limit = DEFAULT_PAGE_SIZE;

  @OpaqueParameter({ description: 'The list.' })
  order: string;

  @OpaqueParameter({ description: 'The mood.', required: false })
  mood?: string;

  @CursorParameter('Start of the page.')
  cursor?: string;
}

@Public()
@Controller('test-toys')
class TestToysController {
  constructor(private readonly lists: Lists) {}

  @Get()
  @Paged(Object, 'A page of toys.')
  listToys(@Query() query: ListQuery): Promise<Page<Item>> {
    return (this.lists.byOrder[query.order] as SharedRepository<Toy, Item>).page(query, { mood: query.mood });
  }
}

@Module({ imports: [TypeOrmModule.forFeature([Toy, HeardToy])], controllers: [TestToysController], providers: [Lists] })
class ToysModule {}

/** Parsers that a module may set, for types whose values would be wrong with them. */
const { types } = pg;
const { BOOL, DATE, INT4, NUMERIC, TIMESTAMP, TIMESTAMPTZ, UUID } = types.builtins;
const parsers = [BOOL, DATE, INT4, NUMERIC, TIMESTAMP, TIMESTAMPTZ, UUID].map(
  (type) => [type, types.getTypeParser(type) as (text: string) => unknown] as const,
);

let database: TestDatabase;
let app: TestApp;
let hasIcu: boolean;
beforeAll(async () => {
  for (const [type] of parsers) types.setTypeParser(type, () => 'changed');
  database = await createTestDatabase();
  await setDefaults(database, {
    datestyle: 'SQL, DMY',
    timezone: 'Asia/Kathmandu',
    intervalstyle: 'sql_standard',
    extra_float_digits: '-15',
  });
  app = await createTestApp({ database, features: [ToysModule] });
  hasIcu = (await app.sql(`SELECT 1 FROM pg_collation WHERE collname = 'de-x-icu'`)).length > 0;
  if (hasIcu) {
    await app.sql(`CREATE COLLATION test_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
  }
  await app.sql(`CREATE TYPE test_mood AS ENUM ('calm', 'wild', 'sly')`);
  await app.sql(`
    CREATE TABLE test_toy (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name varchar(60) COLLATE "C" NOT NULL,
      title varchar(60) ${hasIcu ? 'COLLATE test_nocase' : ''} NOT NULL,
      german varchar(60) ${hasIcu ? 'COLLATE "de-x-icu"' : ''} NOT NULL,
      made_at timestamptz NOT NULL,
      local_at timestamp NOT NULL,
      on_day date NOT NULL,
      price numeric(30, 10) NOT NULL,
      size integer NOT NULL,
      code uuid NOT NULL,
      is_new boolean NOT NULL,
      mood test_mood NOT NULL
    )`);
  const names = [
    'Ball',
    'ball',
    'Bär',
    'Bar',
    'Baz',
    'Zug',
    'Ärger',
    `it's "x"`,
    'back\\slash',
    ' ',
    '🐕',
    '\uffff',
    'a,{b}',
  ];
  const times = [
    '2026-11-27 10:00:00.000001+00',
    '2026-11-27 10:00:00.000002+00',
    '2026-03-29 02:30:00+05:45',
    '1969-12-31 23:59:59.999999+00',
    '1883-11-18 12:03:58.5+00',
    '0044-03-15 12:00:00.25+00 BC',
    '4714-11-24 00:00:00+00 BC',
    '294276-12-31 23:59:59.999999+00',
    '275761-01-01 00:00:00+00',
    'infinity',
    '-infinity',
  ];
  const prices = ['0', '-0.0000000001', '12345678901234567890.0123456789', '0.5', 'NaN'];
  await app.sql(
    `INSERT INTO test_toy (name, title, german, made_at, local_at, on_day, price, size, code, is_new, mood)
      SELECT names[1 + n * 7 % 13], names[1 + n * 5 % 13], names[1 + n * 11 % 13], times[1 + n % 11],
        times[1 + n * 2 % 11] AT TIME ZONE 'UTC', (times[1 + n * 3 % 11] AT TIME ZONE 'UTC')::date, prices[1 + n % 5], n % 3,
        md5((n % 40)::text)::uuid, n % 2 = 0, (ARRAY['calm', 'wild', 'sly']::test_mood[])[1 + n % 3]
      FROM generate_series(1, 130) AS n, (SELECT $1::text[] AS names, $2::timestamptz[] AS times, $3::numeric[] AS prices) AS given`,
    [names, times, prices],
  );
}, 60_000);
afterAll(async () => {
  for (const [type, parser] of parsers) types.setTypeParser(type, parser);
  await app.close();
  await database.drop();
});

const COLUMNS: Partial<Record<keyof Toy, string>> = {
  madeAt: 'made_at',
  localAt: 'local_at',
  day: 'on_day',
  isNew: 'is_new',
};

/** The order of a list, as cursors have it. */
function keysetOf(order: OrderName): Keyset<OrderBy> {
  const [direction] = Object.values(ORDERS[order]);
  return new Keyset<OrderBy>({ ...ORDERS[order], id: direction }, 'test_toy');
}

/** All ids in the order of PostgreSQL. */
async function sortedIds(order: OrderName, where = 'true'): Promise<number[]> {
  const { names, direction } = keysetOf(order);
  const text = names.map((name) => `${COLUMNS[name as keyof Toy] ?? name} ${direction}`);
  const rows = await app.sql(`SELECT id::text AS found FROM test_toy WHERE ${where} ORDER BY ${text.join()}`);
  return rows.map(([id]) => Number(id));
}

const idsOf = ({ json }: HttpAnswer): number[] => (json as unknown as { id: number }[]).map(({ id }) => id);
const nextOf = ({ headers }: HttpAnswer): string | undefined =>
  /^<http:\/\/localhost:3000([^>]+)>; rel="next"$/.exec(String(headers['link']))?.[1];

/** The ids of all pages. `between` runs behind each page. */
async function walk(query: string, between?: (ids: readonly number[]) => Promise<void>): Promise<number[]> {
  const found: number[] = [];
  for (let path: string | undefined = `/v1/test-toys?${query}`; path !== undefined;) {
    const answer = await app.client.get(path);
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    found.push(...idsOf(answer));
    await between?.(found);
    path = nextOf(answer);
  }
  return found;
}

const orders = Object.keys(ORDERS) as OrderName[];

test.each(orders)('%s: pages of any size have all rows once, in the order of PostgreSQL', async (order) => {
  const expected = await sortedIds(order);
  expect(expected).toHaveLength(130);
  // Simultaneous walks share statements.
  const walks = ['limit=1', 'limit=7', 'limit=30', 'limit=100', 'limit=7'];
  const shared = await Promise.all(walks.map((limit) => walk(`order=${order}&${limit}`)));
  for (const found of shared) expect(found).toEqual(expected);
  expect(await walk(`order=${order}%20heard&limit=11`)).toEqual(expected);
  const calm = await sortedIds(order, `mood = 'calm'`);
  for (const way of ['', '%20heard']) expect(await walk(`order=${order}${way}&mood=calm&limit=5`)).toEqual(calm);
});

test.each(orders.filter((order) => RELEASED[order]))('%s: the cursors of the last release stay', async (order) => {
  const [cursor, sly] = RELEASED[order] as readonly [string, string];
  for (const way of ['', '%20heard']) {
    const list = `/v1/test-toys?order=${order}${way}`;
    for (const [query, expected] of [
      ['limit=60', cursor],
      ['limit=4&mood=sly', sly],
    ] as const) {
      const next = nextOf(await app.client.get(`${list}&${query}`)) as string;
      expect([order, way, query, next.split('cursor=')[1]]).toEqual([order, way, query, expected]);
    }
    const { json } = await app.client.get(`${list}&limit=1&cursor=${cursor}`);
    expect(json).toEqual([{ id: (await sortedIds(order))[60] }]);
  }
});

test('fifty walks at the same time', async () => {
  const expected = Object.fromEntries(
    await Promise.all(orders.map(async (order) => [order, await sortedIds(order)] as const)),
  );
  const used = Array.from({ length: 50 }, (_, index) => orders[index % orders.length] as OrderName);
  const found = await Promise.all(used.map((order, index) => walk(`order=${order}&limit=${3 + (index % 20)}`)));
  found.forEach((ids, index) => expect([used[index], ids]).toEqual([used[index], expected[used[index] as OrderName]]));
});

test.each(['name', 'made', 'title heard'])(
  '%s: rows that are added or deleted during a walk neither hide nor repeat others',
  async (order) => {
    const [name] = order.split(' ') as [OrderName];
    const before = await sortedIds(name);
    const added: number[] = [];
    const found = await walk(`order=${encodeURIComponent(order)}&limit=9`, async (ids) => {
      // The last row of the page goes, so the next page begins after a row that is no more; an equal one comes, and one at the start.
      const last = ids.at(-1) as number;
      const copied = await app.sql(
        `INSERT INTO test_toy (name, title, german, made_at, local_at, on_day, price, size, code, is_new, mood)
          SELECT name, title, german, made_at, local_at, on_day, price, size, code, is_new, mood
          FROM test_toy WHERE id IN ($1, $2) RETURNING id::text`,
        [last, before[0]],
      );
      added.push(...copied.map(([id]) => Number(id)));
      if (before.length > 60) await app.sql('DELETE FROM test_toy WHERE id = $1 AND id % 2 = 0', [last]);
    });
    expect(found.filter((id) => !added.includes(id))).toEqual(before);
    expect(new Set(found).size).toBe(found.length);
    await app.sql('DELETE FROM test_toy WHERE id = ANY ($1)', [added]);
  },
);

test('400 invalid_cursor: a cursor of another list, order or filter, and one that nobody made', async () => {
  const cursorOf = (answer: HttpAnswer): string => /[?&]cursor=([^&>]+)/.exec(nextOf(answer) ?? '')?.[1] ?? '';
  const read = (order: string, cursor: string, rest = ''): Promise<HttpAnswer> =>
    app.client.get(`/v1/test-toys?order=${order}&limit=2&cursor=${cursor}${rest}`);
  const byName = cursorOf(await app.client.get('/v1/test-toys?order=name&limit=2'));
  expect((await read('name', byName)).status).toBe(200);
  const last = { name: 'Ball', id: '7' };
  const refused: [order: string, cursor: string, rest?: string][] = [
    ['nameDown', byName],
    ['newest', byName],
    ['name', cursorOf(await app.client.get('/v1/test-toys?order=newest&limit=2'))],
    ['name', byName, '&mood=calm'],
    ['name', `${byName}A`],
    ['name', byName.slice(1)],
    ['name', new Keyset({ name: 'ASC', id: 'ASC' }, 'test_other').encode(last, {})],
    ['name', new Keyset('id').encode({ id: 7n }, {})],
  ];
  /** Cursors that were made for the list by somebody who knows how. */
  const forged: Partial<Record<OrderName, readonly object[]>> = {
    name: [
      { ...last, name: 'a\0b' },
      { ...last, id: '9223372036854775808' },
      { ...last, id: `1' OR true` },
    ],
    made: ['', 'x', 'infinity', '1e3', '9224318016000', '-210866803201', '2026-11-27', '1.0000001'].map((madeAt) => ({
      madeAt,
      id: '1',
    })),
    day: [{ day: '185331707078400', id: '1' }],
    price: ['', '1e5', '--1', 'nan', ' 1'].map((price) => ({ price, id: '1' })),
    code: ['', `${'0'.repeat(32)}`, 'x'.repeat(36)].map((code) => ({ code, id: '1' })),
    many: [
      { isNew: 't', mood: 'calm', size: '1', price: '1', id: '1' },
      { isNew: 'true', mood: 'none', size: '1', price: '1', id: '1' },
    ],
  };
  for (const [order, rows] of Object.entries(forged)) {
    const keyset = keysetOf(order as OrderName);
    for (const row of rows) refused.push([order, keyset.encode(row as Record<string, string>, {})]);
  }
  for (const [order, cursor, rest] of refused) {
    for (const way of ['', '%20heard']) {
      const { status, json } = await read(`${order}${way}`, cursor, rest);
      expect([order, cursor, status, json.code]).toEqual([order, cursor, 400, 'invalid_cursor']);
    }
  }
  // All others that are well formed are only places in the list.
  for (const madeAt of ['Infinity', '-Infinity', '9224318015999.999999', '-210866803200', '-0.5', '0']) {
    const cursor = keysetOf('made').encode({ madeAt, id: '1' }, {});
    for (const way of ['', '%20heard']) expect((await read(`made${way}`, cursor)).status).toBe(200);
  }
});

test('each page reads only its rows, by the index of the order', async () => {
  await app.sql(`
    INSERT INTO test_toy (name, title, german, made_at, local_at, on_day, price, size, code, is_new, mood)
    SELECT 'Toy ' || n % 5000, '', '', timestamptz '2026-01-01' + n % 100 * interval '1 s', '2026-01-01', '2026-01-01', 1, 1,
      md5('')::uuid, true, (CASE WHEN n % 1000 = 0 THEN 'sly' ELSE 'calm' END)::test_mood
    FROM generate_series(1, 20000) AS n`);
  await app.sql('CREATE INDEX ON test_toy (name, id)');
  await app.sql('CREATE INDEX ON test_toy (mood, name, id)');
  await app.sql('CREATE INDEX ON test_toy (made_at, id)');
  await app.sql('ANALYZE test_toy');
  const dataSource = app.nest.get(DataSource);
  const session = dataSource.createQueryRunner();
  try {
    for (const [order, start, filters] of [
      ['name', ['Toy 3000', '9000'], {}],
      ['name', ['Toy 3000', '9000'], { mood: 'sly' }],
      ['name', [], { mood: 'sly' }],
      ['nameDown', ['Toy 3000', '9000'], { mood: 'sly' }],
      ['made', ['J2461042 00:00:50+00', '9000'], {}],
    ] as const) {
      const statements = new EntityStatements(dataSource.getRepository(Toy), keysetOf(order));
      const { columns } = statements.given(filters);
      const { one, many } = statements.pages(columns, start.length === 0 ? 'first' : 'next');
      const values = [...start, ...Object.values(filters)];
      const all = [...values.map((value) => `{"${value}","${value}"}`), '{21,21}'];
      for (const [text, given] of [
        [one(21).text, values],
        [many.text, all],
      ] as const) {
        for (const mode of ['custom', 'generic']) {
          const { read, types } = await planOf(session, mode, text, given);
          const name = [order, start, filters, mode, text === many.text];
          expect([...name, types.filter((type) => /Seq Scan/.test(type)), read < 200]).toEqual([...name, [], true]);
        }
      }
    }
  } finally {
    await session.release();
    await app.sql('DELETE FROM test_toy WHERE id > 1000');
  }
});

interface PlanNode {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** The nodes of a statement's plan, and the rows that its scans of indices read. */
async function planOf(
  session: QueryRunner,
  mode: string,
  text: string,
  values: readonly string[],
): Promise<{ types: string[]; read: number }> {
  await session.query(`SET plan_cache_mode = force_${mode}_plan`);
  await session.query(`PREPARE explained AS ${text}`);
  try {
    const list = values.map((value) => pg.escapeLiteral(value)).join();
    const [row] = (await session.query(
      `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained${list === '' ? '' : `(${list})`}`,
    )) as [{ 'QUERY PLAN': [{ Plan: PlanNode }] }];
    const types: string[] = [];
    let read = 0;
    for (const waiting = [row['QUERY PLAN'][0].Plan]; waiting.length > 0;) {
      const node = waiting.shift() as PlanNode;
      types.push(node['Node Type']);
      if (node['Node Type'].includes('Index')) {
        read += (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
      }
      waiting.push(...(node.Plans ?? []));
    }
    return { types, read };
  } finally {
    await session.query('DEALLOCATE explained');
    await session.query('RESET plan_cache_mode');
  }
}

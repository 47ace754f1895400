import { TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import {
  AfterLoad,
  Column,
  DataSource,
  DeleteDateColumn,
  Entity,
  type EntitySubscriberInterface,
  EventSubscriber,
  Index,
  ManyToOne,
  PrimaryGeneratedColumn,
  VersionColumn,
} from 'typeorm';
import { Idempotency, IdempotencyKey, Keyset, type OrderBy, type Page, SharedRepository } from '#resources';
import { IDEMPOTENCY_KEY_REUSED, INVALID_CURSOR } from '#errors';
import { Database } from '#postgres';
import { EntitySql } from '../../libs/resources/src/entity-sql.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { setDefaults } from '../support/hostile-settings.js';
import { planOf } from '../support/plan.js';

/*
 * Lists that are sorted by several columns, against the order of PostgreSQL, and rows with arrays: in shared statements and by TypeORM.
 * The log says which entities share no statements, and why.
 */

const generated = (): PropertyDecorator => PrimaryGeneratedColumn('identity', { type: 'bigint' });
const MOODS = ['calm', 'wild', 'sly'] as const;

@Entity('test_toy')
@Index(['name', 'id'])
@Index(['mood', 'name', 'id'])
@Index(['madeAt', 'id'])
class Toy {
  @generated() id: string;
  @Column({ type: 'varchar', length: 60 }) name: string;

  /** With a collation whose comparison ignores case, where the engine has ICU. */
  @Column({ type: 'varchar', length: 60 }) title: string;

  /** With a German collation, where the engine has ICU. */
  @Column({ type: 'varchar', length: 60 }) german: string;
  @Column({ name: 'made_at', type: 'timestamp with time zone' }) madeAt: Date;
  @Column({ name: 'local_at', type: 'timestamp without time zone' }) localAt: Date;
  @Column({ name: 'on_day', type: 'date' }) day: string;
  @Column({ type: 'numeric', precision: 30, scale: 10 }) price: string;
  @Column({ type: 'integer' }) size: number;
  @Column({ type: 'uuid' }) code: string;
  @Column({ name: 'is_new', type: 'boolean' }) isNew: boolean;
  @Column({ type: 'enum', enum: MOODS, enumName: 'test_mood' }) mood: string;
}

/** The same rows, each read by a statement of TypeORM, because the entity has a listener. */
@Entity('test_toy')
class HeardToy extends Toy {
  @AfterLoad()
  hear(): void {}
}

@Entity('test_tagged')
class Tagged {
  @generated() id: string;
  @Column({ type: 'text', array: true }) tags: string[];
  @Column({ type: 'bigint', array: true, nullable: true }) numbers: string[] | null;
  @Column({ type: 'integer', array: true, nullable: true }) sizes: (number | null)[] | null;
  @Column({ type: 'varchar', array: true, nullable: true }) grid: string[][] | null;
  @Column({ type: 'enum', enum: MOODS, enumName: 'test_mood', array: true, default: [] }) moods: string[];
  @Column({ name: 'made_at', type: 'timestamp', default: () => 'now()' }) madeAt: Date;
}

@Entity('test_tagged')
class HeardTagged extends Tagged {
  @AfterLoad()
  hear(): void {}
}

class Part {
  @Column({ type: 'text' }) label: string;
}

@Entity('test_versioned')
class Versioned {
  @generated() id: string;
  @VersionColumn() version: number;
  @DeleteDateColumn({ type: 'timestamptz' }) deletedAt: Date | null;
  @Column(() => Part) part: Part;
  @Column({ type: 'text', select: false }) secret: string;
  @Column({ type: 'text', insert: false }) kept: string;
  @Column({ type: 'point' }) place: unknown;
  @Column({ type: 'jsonb', array: true }) rows: unknown[];
}

@Entity('test_loaded')
class Loaded {
  @generated() id: string;
  @ManyToOne(() => Tagged, { lazy: true }) other: Promise<Tagged>;

  @AfterLoad()
  mark(): void {}
}

@EventSubscriber()
class LoadedSubscriber implements EntitySubscriberInterface<Loaded> {
  listenTo(): typeof Loaded {
    return Loaded;
  }
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
const orders = Object.keys(ORDERS) as OrderName[];

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

/** Parsers that a module may set, for types whose values would be wrong with them. */
const { types } = pg;
const { BOOL, DATE, INT4, NUMERIC, TIMESTAMP, TIMESTAMPTZ, UUID } = types.builtins;
const ARRAYS = [1009, 1015, 1016];
const parsers = [BOOL, DATE, INT4, NUMERIC, TIMESTAMP, TIMESTAMPTZ, UUID, ...ARRAYS].map(
  (type) => [type, types.getTypeParser(type) as (text: string) => unknown] as const,
);

const ALL = 'name, title, german, made_at, local_at, on_day, price, size, code, is_new, mood';

let database: TestDatabase;
let app: TestApp;
let shared: SharedRepository<Tagged, Tagged>;
let heard: SharedRepository<Tagged, Tagged>;
/** Each list twice: by shared statements, and by TypeORM. */
let lists: Readonly<
  Record<OrderName, readonly [shared: SharedRepository<Toy, Toy>, heard: SharedRepository<Toy, Toy>]>
>;

/** A repository with what Nest injects. */
function listOf<Row extends { id: string }>(
  entity: new () => Row,
  order?: OrderBy<keyof Row & string>,
): SharedRepository<Row, Row> {
  const all = app.nest.get(DataSource).getRepository(entity);
  return Object.assign(new SharedRepository<Row, Row>(all, (one) => one, order), {
    database: app.nest.get(Database),
    idempotency: app.nest.get(Idempotency),
  });
}

beforeAll(async () => {
  for (const [type] of parsers) types.setTypeParser(type, () => 'changed');
  database = await createTestDatabase();
  await setDefaults(database, {
    datestyle: 'SQL, DMY',
    timezone: 'Asia/Kathmandu',
    intervalstyle: 'sql_standard',
    extra_float_digits: '-15',
  });
  app = await createTestApp({
    database,
    features: [TypeOrmModule.forFeature([Toy, HeardToy, Tagged, HeardTagged, Versioned, Loaded])],
    typeorm: { subscribers: [LoadedSubscriber] },
  });
  const hasIcu = (await app.sql(`SELECT 1 FROM pg_collation WHERE collname = 'de-x-icu'`)).length > 0;
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
  await app.sql(`
    CREATE TABLE test_tagged (
      id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, tags text[] NOT NULL, numbers bigint[], sizes integer[],
      grid varchar[], moods test_mood[] NOT NULL DEFAULT '{}', made_at timestamp NOT NULL DEFAULT now()
    )`);
  const names = `Ball|ball|Bär|Bar|Baz|Zug|Ärger|it's "x"|back\\slash| |🐕|\uffff|a,{b}`.split('|');
  const times = (
    '2026-11-27 10:00:00.000001+00|2026-11-27 10:00:00.000002+00|2026-03-29 02:30:00+05:45|1969-12-31 23:59:59.999999+00|' +
    '1883-11-18 12:03:58.5+00|0044-03-15 12:00:00.25+00 BC|4714-11-24 00:00:00+00 BC|290000-12-31 23:59:59.999999+00|' +
    '275761-01-01 00:00:00+00|infinity|-infinity'
  ).split('|');
  const prices = ['0', '-0.0000000001', '12345678901234567890.0123456789', '0.5', 'NaN'];
  await app.sql(
    `INSERT INTO test_toy (${ALL})
      SELECT names[1 + n * 7 % 13], names[1 + n * 5 % 13], names[1 + n * 11 % 13], times[1 + n % 11],
        times[1 + n * 2 % 11] AT TIME ZONE 'UTC', (times[1 + n * 3 % 11] AT TIME ZONE 'UTC')::date, prices[1 + n % 5], n % 3,
        md5((n % 40)::text)::uuid, n % 2 = 0, (ARRAY['calm', 'wild', 'sly']::test_mood[])[1 + n % 3]
      FROM generate_series(1, 130) AS n, (SELECT $1::text[] AS names, $2::timestamptz[] AS times, $3::numeric[] AS prices) AS given`,
    [names, times, prices],
  );
  const all = orders.map((order) => [order, [Toy, HeardToy].map((entity) => listOf(entity, ORDERS[order]))]);
  lists = Object.fromEntries(all) as typeof lists;
  [shared, heard] = [listOf(Tagged), listOf<Tagged>(HeardTagged)];
  expect([...lists.name, shared, heard].map((list) => list['mayShare'])).toEqual([true, false, true, false]);
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

/** The ids of all pages. `between` runs behind each page. */
async function walk(
  list: SharedRepository<Toy, Toy>,
  limit: number,
  filters: { mood?: string } = {},
  between?: (ids: readonly number[]) => Promise<void>,
): Promise<number[]> {
  const found: number[] = [];
  for (let next: Page<Toy> | undefined; next === undefined || next.nextCursor !== undefined;) {
    next = await list.page({ limit, cursor: next?.nextCursor }, filters);
    found.push(...next.items.map(({ id }) => Number(id)));
    await between?.(found);
  }
  return found;
}

test.each(orders)('%s: pages of any size have all rows once, in the order of PostgreSQL', async (order) => {
  const [shared, heard] = lists[order];
  const expected = await sortedIds(order);
  expect(expected).toHaveLength(130);
  // Simultaneous walks share statements.
  const walks = await Promise.all([1, 7, 30, 100, 7].map((limit) => walk(shared, limit)));
  for (const found of [...walks, await walk(heard, 11)]) expect(found).toEqual(expected);
  const calm = await sortedIds(order, `mood = 'calm'`);
  for (const list of lists[order]) expect(await walk(list, 5, { mood: 'calm' })).toEqual(calm);
});

test.each(orders.filter((order) => RELEASED[order]))('%s: the cursors of the last release stay', async (order) => {
  const [cursor, sly] = RELEASED[order] as readonly [string, string];
  const expected = (await sortedIds(order))[60];
  for (const list of lists[order]) {
    expect((await list.page({ limit: 60 })).nextCursor).toBe(cursor);
    expect((await list.page({ limit: 4 }, { mood: 'sly' })).nextCursor).toBe(sly);
    expect((await list.page({ limit: 1, cursor })).items.map(({ id }) => Number(id))).toEqual([expected]);
  }
});

test.each([
  ['name', 0],
  ['made', 0],
  ['title', 1],
] as const)('%s: rows that are added or deleted during a walk neither hide nor repeat others', async (order, way) => {
  const before = await sortedIds(order);
  const added: number[] = [];
  const found = await walk(lists[order][way], 9, {}, async (ids) => {
    // The last row of the page goes, so the next page begins after a row that is no more; an equal one comes, and one at the start.
    const last = ids.at(-1) as number;
    const copied = await app.sql(
      `INSERT INTO test_toy (${ALL}) SELECT ${ALL} FROM test_toy WHERE id IN ($1, $2) RETURNING id::text`,
      [last, before[0]],
    );
    added.push(...copied.map(([id]) => Number(id)));
    if (before.length > 60) await app.sql('DELETE FROM test_toy WHERE id = $1 AND id % 2 = 0', [last]);
  });
  expect(found.filter((id) => !added.includes(id))).toEqual(before);
  expect(new Set(found).size).toBe(found.length);
  await app.sql('DELETE FROM test_toy WHERE id = ANY ($1)', [added]);
});

test('400 invalid_cursor: a cursor of another list, order or filter, and one that nobody made', async () => {
  const [byName, newest] = (await Promise.all(
    (['name', 'newest'] as const).map(async (order) => String((await lists[order][0].page({ limit: 2 })).nextCursor)),
  )) as [string, string];
  const last = { name: 'Ball', id: '7' };
  const refused: [order: OrderName, cursor: string, filters?: { mood: string }][] = [
    ['nameDown', byName],
    ['newest', byName],
    ['name', newest],
    ['name', byName, { mood: 'calm' }],
    ['name', `${byName}A`],
    ['name', byName.slice(1)],
    ['name', new Keyset({ name: 'ASC', id: 'ASC' }, 'test_other').encode(last, {})],
    ['name', new Keyset('id').encode({ id: 7n }, {})],
  ];
  // Cursors that were made for the list by somebody who knows how.
  for (const madeAt of ['', 'x', 'infinity', '1e3', '2026-11-27', '1.0000001'])
    refused.push(['made', keysetOf('made').encode({ madeAt, id: '1' }, {})]);
  refused.push(['name', keysetOf('name').encode({ ...last, name: 'a\0b' }, {})]);
  for (const [order, cursor, filters] of refused) {
    for (const list of lists[order]) {
      const error = await list.page({ limit: 2, cursor }, filters).catch((thrown: unknown) => thrown);
      expect([order, cursor, error]).toMatchObject([order, cursor, { definition: INVALID_CURSOR }]);
    }
  }
});

test('simultaneous pages with other filters have other rows, also with boxed numbers', async () => {
  const [list] = lists.name;
  const pages = await Promise.all([0, 1, 2].map((size) => list.page({ limit: 5 }, { size: Object(size) as number })));
  // The size of a row is the rest of its id.
  expect(pages.map(({ items }) => [...new Set(items.map(({ id }) => Number(id) % 3))])).toEqual([[0], [1], [2]]);
});

test('a forged cursor with a value that PostgreSQL refuses fails alone', async () => {
  const list = lists.name[0];
  const cursor = keysetOf('name').encode({ name: 'Ball', id: `1' OR true` }, {});
  const page = list.page({ limit: 2 });
  await expect(list.page({ limit: 2, cursor })).rejects.toMatchObject({ code: '22P02' });
  expect((await page).items).toHaveLength(2);
});

test('each page reads only its rows, by the index of the order', async () => {
  await app.sql(`
    INSERT INTO test_toy (${ALL})
    SELECT 'Toy ' || n % 5000, '', '', timestamptz '2026-01-01' + n % 100 * interval '1 s', '2026-01-01', '2026-01-01', 1, 1,
      md5('')::uuid, true, (CASE WHEN n % 1000 = 0 THEN 'sly' ELSE 'calm' END)::test_mood
    FROM generate_series(1, 20000) AS n`);
  for (const columns of ['name, id', 'mood, name, id', 'made_at, id'])
    await app.sql(`CREATE INDEX ON test_toy (${columns})`);
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
      const statements = new EntitySql(dataSource.getRepository(Toy), keysetOf(order));
      const { columns } = statements.given(filters);
      const { one, many } = statements.pages(columns, start.length === 0 ? 'first' : 'next');
      const values = [...start, ...Object.values(filters)];
      const all = [...values.map((value) => `{"${value}","${value}"}`), '{21,21}'];
      for (const [text, given] of [
        [one(21).text, values],
        [many.text, all],
      ] as const) {
        for (const mode of ['custom', 'generic'] as const) {
          const nodes = await planOf(session, mode, text, given, true);
          let read = 0;
          for (const scan of nodes.filter((node) => /Index|Seq Scan/.test(node['Node Type'])))
            read += (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)) * scan['Actual Loops'];
          const hasSeqScan = nodes.some((node) => node['Node Type'] === 'Seq Scan');
          const name = [order, start, filters, mode, text === many.text];
          expect([...name, hasSeqScan, read < 200]).toEqual([...name, false, true]);
        }
      }
    }
  } finally {
    await session.release();
    await app.sql('DELETE FROM test_toy WHERE id > 1000');
  }
});

test('the log names each entity whose requests share no statements, with each reason, once', async () => {
  await shared.page({ limit: 1 });
  for (const entity of [Versioned, Loaded, Loaded]) {
    await listOf<{ id: string }>(entity)
      .page({ limit: 1 })
      .catch(() => undefined);
  }
  const slow = 'So its pages, look-ups and inserts run one by one through TypeORM, at about four times the CPU time.';
  const of = ({ lines }: TestApp['log']): unknown[] =>
    lines.filter(({ msg }) => /^(?!Heard).+ through TypeORM/.test(msg)).map(({ level, msg }) => [level, msg]);
  expect(of(app.log)).toEqual([
    [
      40,
      'Versioned shares no statements, because of column version, column deletedAt, column secret, column kept, ' +
        `column place, column rows, column partLabel. ${slow}`,
    ],
    [
      40,
      'Loaded shares no statements, because of column otherId, lazy relation other, listener mark, ' +
        `subscriber LoadedSubscriber. ${slow}`,
    ],
  ]);
});

const TAGS = [[], ['a'], ['a,b', '{c}', '"d"', "it's", 'e\\f', '', 'NULL', 'null', ' ', '\n', '🐕', '\uffff']];
const GRID = [
  ['x', 'NULL'],
  ['', '"'],
];
const VALUES = TAGS.flatMap((tags): Partial<Tagged>[] => [
  { tags },
  { tags, numbers: null, sizes: [], grid: [] },
  { tags, numbers: ['9223372036854775807', '-9223372036854775808', '0'], sizes: [1, null, -2147483648] },
  { tags, grid: GRID, moods: ['wild', 'calm'] },
]);

test('rows with arrays are stored and read as TypeORM stores and reads them, in shared statements', async () => {
  // TypeORM makes a Date of what the parser of a module gives.
  types.setTypeParser(TIMESTAMP, (text) => text);
  let replayed = 0;
  const keyOf = (index: number): IdempotencyKey =>
    new IdempotencyKey(1n, 'POST /toys', `toy ${index}`, () => void replayed++);
  const inserts = (to: typeof shared, from: number): Promise<bigint[]> =>
    Promise.all(
      VALUES.map((values, index) => to.insertOnce(index % 2 ? keyOf(from + index) : undefined, values, values)),
    );
  const [ofShared, ofHeard] = [await inserts(shared, 0), await inserts(heard, 100)];
  // Each repeats the keys of the other.
  for (const [to, from, ids] of [
    [heard, 0, ofShared],
    [shared, 100, ofHeard],
  ] as const)
    for (const [index, values] of VALUES.entries())
      if (index % 2) expect(await to.insertOnce(keyOf(from + index), values, values)).toBe(ids[index]);
  expect(replayed).toBe(VALUES.length);
  for (const from of [shared, heard]) {
    const reused = from.insertOnce(keyOf(1), {}, { tags: [] });
    await expect(reused).rejects.toMatchObject({ definition: IDEMPOTENCY_KEY_REUSED });
  }
  for (const [index, values] of VALUES.entries()) {
    for (const id of [ofShared[index], ofHeard[index]] as bigint[]) {
      const expected = { numbers: null, sizes: null, grid: null, moods: [], ...values, id: String(id) };
      for (const from of [shared, heard]) expect(await from.find(id)).toMatchObject(expected);
    }
  }
  // By pg's prepared query and by several pages in one statement.
  const [one, ...several] = await Promise.all([1, 2, 3, 99].map((limit) => shared.page({ limit })));
  expect(several.at(-1)).toEqual(await heard.page({ limit: 99 }));
  expect(one?.items).toEqual(several.at(-1)?.items.slice(0, 1));
  const [same, other] = await Promise.all([shared.page({ limit: 1 }), shared.page({ limit: 1 })]);
  expect(other).toBe(same);
  expect(await app.sql("SELECT FROM test_tagged WHERE made_at < now() - interval '1 day'")).toEqual([]);
});

test('rows are filtered by a whole array', async () => {
  for (const tags of TAGS) {
    const [one, other, slow] = await Promise.all([
      shared.page({ limit: 99 }, { tags }),
      shared.page({ limit: 98 }, { tags, moods: ['wild', 'calm'] }),
      heard.page({ limit: 99 }, { tags }),
    ]);
    expect([one.items.length, other.items.length, one.items[0]?.tags]).toEqual([8, 2, tags]);
    expect(one).toEqual(slow);
  }
});

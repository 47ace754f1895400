import { Column, DataSource, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { StartupError } from '#runtime';
import { EntitySql } from './entity-sql.js';
import { Keyset, type OrderBy } from './cursors.js';
import type { FiltersOf } from './shared.repository.js';

@Entity('thing')
@Index(['shop', 'id', 'mood'])
class Thing {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column({ type: 'int' }) shop: number;
  @Column({ type: 'text' }) mood: string;
  @Column({ type: 'simple-json' }) extra: unknown;
}

@Entity('thing')
class ReadThing {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column({ type: 'int', insert: false }) shop: number;
}

@Entity('key')
class WithoutId {
  @PrimaryGeneratedColumn('uuid') key: string;
}

@Entity('sorted')
class Sorted {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' }) id: string;
  @Column() name: string;
  @Column({ type: 'varchar', length: 512 }) title: string;
  @Column({ type: 'numeric' }) price: string;
  @Column({ type: 'double precision' }) weight: number;
  @Column({ type: 'text', array: true }) tags: string[];
  @Column({ name: 'sold_at', type: 'timestamptz', nullable: true }) soldAt: Date | null;
}

let dataSource: DataSource;
beforeAll(async () => {
  dataSource = new DataSource({ type: 'postgres', entities: [Thing, ReadThing, WithoutId, Sorted] });
  await (dataSource as unknown as { buildMetadatas(): Promise<void> }).buildMetadatas();
});
const statementsOf = (entity: new () => object): EntitySql<object> => new EntitySql(dataSource.getRepository(entity));

test('a page has every filter, also where an index has the id before it', () => {
  const things = statementsOf(Thing);
  const pages = things.pages(things.given({ mood: 'calm' }).columns, 'first');
  for (const { text } of [pages.one(2), pages.many]) expect(text).toMatch(/"mood" = (\$1|page\.value_0)/);
});

test('the type of filters refuses null, with which a page would always be empty', () => {
  // @ts-expect-error -- the check of types fails if this compiles
  const filters: FiltersOf<{ mood: string | null }> = { mood: null };
  expect(Object.keys(filters)).toEqual(['mood']);
});

test.each([
  [ReadThing, { id: '1', shop: 2 }],
  [Sorted, { id: '1', name: 'a', title: 'b', price: '4.0', weight: 5, tags: ['f'], soldAt: null }],
])('an entity of %p has each value of its row under its name, in their order', (entity, expected) => {
  expect(Object.entries(new (statementsOf(entity).Entity)(Object.values(expected)))).toEqual(Object.entries(expected));
});

test('TypeORM converts what it converts', () => {
  expect(new (statementsOf(Thing).Entity)(['1', 2, 'calm', '{"a":1}'])).toMatchObject({ extra: { a: 1 } });
});

test('entities on one table have statements with names of their own', () => {
  const [one, other] = [Thing, ReadThing].map((entity) => statementsOf(entity).find.one);
  expect(one?.name).not.toBe(other?.name);
});

test('an entity without a generated bigint id is refused', () => {
  expect(() => statementsOf(WithoutId)).toThrow('A SharedRepository needs a generated bigint id');
});

test.each<[order: OrderBy, reason: string]>([
  [{ nam: 'ASC', id: 'ASC' }, 'nam, id: it has no column nam. Name its properties.'],
  [
    { soldAt: 'DESC', id: 'DESC' },
    'but soldAt is another column. Change it, or write a query with a Keyset that sorts by an expression, such as ' +
      '(coalesce(sold_at, …), id) > (:soldAt, :id).',
  ],
  [{ name: 'ASC', id: 'ASC' }, 'texts with a length, enumerations, integers, numeric with a precision'],
  [{ price: 'ASC', id: 'ASC' }, 'but price is another column'],
  [{ weight: 'ASC', id: 'ASC' }, 'but weight is another column'],
  [{ tags: 'ASC', id: 'ASC' }, 'but tags is another column'],
  [{ title: 'ASC', id: 'ASC' }, 'their values may have 2084 bytes, and a cursor holds 2048.'],
])('an order is refused at start: %j', (order, reason) => {
  const statements = (): unknown => new EntitySql(dataSource.getRepository(Sorted), new Keyset(order));
  expect(statements).toThrow(StartupError);
  expect(statements).toThrow(reason);
});

test('a page by id is in order, whatever the order of the rows of several pages', () => {
  const rows = ['10', '9', '8', '11'].map((id, at) => [id, 1, 'calm', '{}', `${1 + (at % 2)}`]);
  const pages = statementsOf(Thing).pagesOf(rows, 2);
  expect(pages.map((page) => page.map(([id]) => id))).toEqual([
    ['8', '10'],
    ['9', '11'],
  ]);
});

import { Column, DataSource, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { EntityStatements } from './entity-statements.js';
import type { FiltersOf } from './shared.repository.js';

@Entity('thing')
@Index(['shop', 'id', 'mood'])
class Thing {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' })
  id: string;

  @Column({ type: 'int' })
  shop: number;

  @Column({ type: 'text' })
  mood: string;

  @Column({ type: 'simple-json' })
  extra: unknown;
}

@Entity('thing')
class ReadThing {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' })
  id: string;

  @Column({ type: 'int', insert: false })
  shop: number;
}

@Entity('key')
class WithoutId {
  @PrimaryGeneratedColumn('uuid')
  key: string;
}

let dataSource: DataSource;
beforeAll(async () => {
  dataSource = new DataSource({ type: 'postgres', entities: [Thing, ReadThing, WithoutId] });
  await (dataSource as unknown as { buildMetadatas(): Promise<void> }).buildMetadatas();
});
const statementsOf = (entity: new () => object): EntityStatements<object> =>
  new EntityStatements(dataSource.getRepository(entity));

test('a page has every filter, also where an index has the id before it', () => {
  const things = statementsOf(Thing);
  const pages = things.pages(things.given({ mood: 'calm' }).columns);
  for (const { text } of [pages.one(2), pages.many]) expect(text).toMatch(/"mood" = (\$2|page\.wanted_0)/);
});

test('the type of filters refuses null, with which a page would always be empty', () => {
  // @ts-expect-error -- the check of types fails if this compiles
  const filters: FiltersOf<{ mood: string | null }> = { mood: null };
  expect(Object.keys(filters)).toEqual(['mood']);
});

test('TypeORM converts what it converts, and inserts what has columns that it does not insert', () => {
  expect(new (statementsOf(Thing).Entity)(['1', 2, 'calm', '{"a":1}'])).toMatchObject({ extra: { a: 1 } });
  expect([Thing, ReadThing].map((entity) => statementsOf(entity).areComplete)).toEqual([true, false]);
});

test('entities on one table have statements with names of their own', () => {
  const [one, other] = [Thing, ReadThing].map((entity) => statementsOf(entity).find.one);
  expect(one?.name).not.toBe(other?.name);
});

test('an entity without a generated bigint id is refused', () => {
  expect(() => statementsOf(WithoutId)).toThrow('A SharedRepository needs a generated bigint id');
});

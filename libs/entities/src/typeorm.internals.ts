import { DataSource, type EntityMetadata, EntitySchema } from 'typeorm';
import type { Reach } from '#runtime';

export type ColumnMetadata = EntityMetadata['columns'][number];

const driverOf = (column: ColumnMetadata): DataSource['driver'] => column.entityMetadata.dataSource.driver;

/** The value of a property as TypeORM sends it to PostgreSQL. */
export function writtenValue(column: ColumnMetadata, value: unknown): unknown {
  return driverOf(column).preparePersistentValue(value, column) as unknown;
}

/** The value of a column as TypeORM gives it to an entity. */
export function readValue(column: ColumnMetadata, value: unknown): unknown {
  return driverOf(column).prepareHydratedValue(value, column) as unknown;
}

/** The type of a column, as PostgreSQL names it. */
export function typeNameOf(column: ColumnMetadata): string {
  return driverOf(column).normalizeType(column);
}

/** The indices of an entity: their columns in order, and the condition of a partial one. */
export function indicesOf({ indices }: EntityMetadata): readonly Pick<(typeof indices)[number], 'columns' | 'where'>[] {
  return indices;
}

/** The names of an entity's methods such as those with `@BeforeInsert()`. */
export function listenersOf({ listeners }: EntityMetadata): readonly string[] {
  return listeners.map(({ propertyName }) => propertyName);
}

export const TYPEORM_ENTITIES: Reach & { check(change?: (toy: EntityMetadata) => void): Promise<string | undefined> } =
  {
    dependency: 'typeorm',
    touches:
      'preparePersistentValue, prepareHydratedValue and normalizeType of its driver, indices and listeners of its metadata',
    why: 'repositories whose statements treat an entity as TypeORM does',
    check: async (change: (toy: EntityMetadata) => void = () => undefined) => {
      const toys = new EntitySchema({
        name: 'Toy',
        columns: {
          id: { type: 'bigint', primary: true, generated: true },
          name: { type: String },
          tags: { type: 'simple-json' },
        },
        indices: [{ columns: ['name', 'id'], where: 'id > 1' }],
      });
      // Never connected.
      const dataSource = new DataSource({ type: 'postgres', entities: [toys] });
      await dataSource['buildMetadatas']();
      const toy = dataSource.getMetadata(toys);
      change(toy);
      const tags = toy.columns.find(({ propertyName }) => propertyName === 'tags') as ColumnMetadata;
      const seen = [
        ...[writtenValue(tags, ['a']), JSON.stringify(readValue(tags, '["b"]')), toy.columns.map(typeNameOf).join()],
        ...indicesOf(toy).map(
          ({ columns, where }) => `${columns.map(({ propertyName }) => propertyName).join()} ${where}`,
        ),
        `listeners: ${listenersOf(toy).join()}`,
      ].join('; ');
      return seen === EXPECTED ? undefined : `it describes entities in another way (${seen}; expected: ${EXPECTED})`;
    },
  };

const EXPECTED = '["a"]; ["b"]; bigint,character varying,text; name,id id > 1; listeners: ';

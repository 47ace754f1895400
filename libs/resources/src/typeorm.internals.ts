import type { DataSource, EntityMetadata } from 'typeorm';

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

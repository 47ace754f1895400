import { hash } from 'node:crypto';
import type { EntityMetadata, ObjectLiteral, Repository, SelectQueryBuilder } from 'typeorm';
import { StartupError } from '#runtime';
import { insertOnceText } from '#idempotency';
import { INT64_MAX } from '#json';
import type { Statement } from '#postgres';
import { MAX_PAGE_SIZE } from './keyset.js';
import {
  type ColumnMetadata,
  hasListeners,
  indicesOf,
  readValue,
  typeNameOf,
  writtenValue,
} from './typeorm.internals.js';

/** Columns with a value, in the order of the entity, and the values as PostgreSQL takes them. */
export interface Given {
  /** A number that stands for the set of columns. */
  readonly key: number;
  readonly columns: readonly ColumnMetadata[];
  readonly values: readonly unknown[];
}

/** The largest page, and the row that shows whether another page follows. */
const MAX_ROWS = MAX_PAGE_SIZE + 1;

/** Each column is a bit of an exact number. */
const MAX_COLUMNS = 53;

/** PostgreSQL tells prepared statements apart by the first bytes of their names. */
const MAX_NAME_BYTES = 63;

/** Types whose arrays `unnest` takes without a loss, beside named enumerations. */
const TYPES = new Set(
  'bigint,boolean,character varying,date,double precision,integer,jsonb,numeric,real,smallint,text,uuid'
    .split(',')
    .concat('timestamp with time zone'),
);

/** Types whose values TypeORM converts when it reads them, beside enumerations of numbers. */
const CONVERTED_TYPES: readonly unknown[] = ['date', 'simple-array', 'simple-json'];

/** Types whose values TypeORM passes unchanged to PostgreSQL, beside enumerations. */
const PASSED_TYPES = new Set<unknown>(['bigint', 'integer', 'smallint', 'text', 'uuid', 'varchar', Number, String]);

/** The SQL of pages, look-ups and inserts of an entity, derived from TypeORM's metadata. */
export class EntityStatements<Entity extends ObjectLiteral> {
  private readonly metadata: EntityMetadata;
  private readonly driver: EntityMetadata['dataSource']['driver'];
  /** The columns whose values TypeORM converts before it writes them. */
  private readonly converted: ReadonlySet<ColumnMetadata>;
  /** The class that makes an entity of a row. */
  readonly Entity: new (row: readonly unknown[]) => Entity;

  /** @throws StartupError when the primary key of the entity is no generated bigint `id` */
  constructor(private readonly repository: Repository<Entity>) {
    this.metadata = repository.metadata;
    this.driver = this.metadata.dataSource.driver;
    const { columns, primaryColumns, name } = this.metadata;
    const isPassed = ({ transformer, type, enumName }: ColumnMetadata): boolean =>
      !transformer && (PASSED_TYPES.has(type) || enumName !== undefined);
    this.converted = new Set(columns.filter((column) => !isPassed(column)));
    this.Entity = entityClass(columns);
    this.Entity.prototype = Object.getPrototypeOf(repository.create()) as object;
    if (primaryColumns.some((id) => id.databasePath !== 'id' || !id.isGenerated || this.typeOf(id) !== 'bigint')) {
      throw new StartupError(
        `A SharedRepository needs a generated bigint id as primary key. For ${name}, use TypeORM's Repository.`,
      );
    }
  }

  /** Whether the statements do for the entity what TypeORM would do. */
  get areComplete(): boolean {
    const { columns, eagerRelations, lazyRelations } = this.metadata;
    const isSpecial = (column: ColumnMetadata): boolean =>
      !column.isSelect ||
      !column.isInsert ||
      [column.isVirtual, column.isVirtualProperty, column.isArray, column.embeddedMetadata !== undefined].includes(
        true,
      ) ||
      [column.isDiscriminator, column.isDeleteDate, column.isVersion].includes(true) ||
      (column.enumName === undefined && !TYPES.has(this.typeOf(column)));
    const hasMore = eagerRelations.length > 0 || lazyRelations.length > 0 || hasListeners(this.metadata);
    return !hasMore && columns.length <= MAX_COLUMNS && !columns.some(isSpecial);
  }

  given(source: Readonly<Record<string, unknown>>): Given {
    const columns: ColumnMetadata[] = [];
    const values: unknown[] = [];
    let key = 0;
    let bit = 1;
    for (const column of this.metadata.columns) {
      let value = source[column.propertyName];
      if (value !== undefined) {
        if (this.converted.has(column)) value = writtenValue(column, value);
        columns.push(column);
        key += bit;
        values.push(typeof value === 'bigint' ? String(value) : value);
      }
      bit *= 2;
    }
    return { key, columns, values };
  }

  /** Completes the query of a page, of the alias `entity`. `firstId`, and a filter's value by its position, are SQL. */
  page(
    query: SelectQueryBuilder<Entity>,
    filters: readonly ColumnMetadata[],
    firstId: string,
    valueOf: (filter: number) => string,
  ): SelectQueryBuilder<Entity> {
    const order = this.orderOf(filters);
    const from = (id: string): string[] =>
      order.map((column) => (filters.includes(column) ? valueOf(filters.indexOf(column)) : id));
    const names = order.map(nameOf);
    for (const name of names) query.addOrderBy(name);
    if (order.length > 1) {
      // Only the index can serve these row comparisons. With `status = :status` PostgreSQL might scan the primary key and skip
      // rows of other statuses: the whole table, if the status is rare.
      query.where(`(${names.join()}) >= (${from(firstId).join()})`);
      return query.andWhere(`(${names.join()}) <= (${from(String(INT64_MAX)).join()})`);
    }
    query.where(`entity.id >= ${firstId}`);
    filters.forEach((filter, index) => query.andWhere(`${nameOf(filter)} = ${valueOf(index)}`));
    return query;
  }

  /**
   * The statements that read one page, and several pages at once. The values are the first id and the filters; of `many`,
   * arrays of first ids, of row limits and of each filter.
   */
  pages(filters: readonly ColumnMetadata[]) {
    const select = (limit: number, firstId: string, valueOf: (filter: number) => string): string =>
      this.page(this.query(), filters, firstId, valueOf).limit(limit).getQuery();
    const largest = select(MAX_ROWS, 'page.first_id', (filter) => `page.wanted_${filter}`);
    const types = filters.map((filter, index) => `, $${index + 3}::${this.typeOf(filter)}[]`).join('');
    const names = filters.map((_, index) => `wanted_${index}, `).join('');
    const order = this.orderOf(filters).map((column) => this.metadata.columns.indexOf(column) + 1);
    const one: Statement[] = [];
    return {
      // The limit is part of the text: as a parameter, PostgreSQL could not estimate how few rows it means.
      one: (limit: number): Statement =>
        (one[limit] ??= this.statement(
          `page_${limit}`,
          select(limit, '$1', (filter) => `$${filter + 2}`),
        )),
      // The inner limit is a constant: of `size` PostgreSQL would assume a tenth of the table, and with many rows compile the
      // statement (JIT) at each execution, which takes longer than running it.
      many: this.statement(
        'page_many',
        `SELECT found.*, position
          FROM unnest($1::bigint[], $2::int[]${types}) WITH ORDINALITY AS page (first_id, size, ${names}position)
          CROSS JOIN LATERAL (SELECT * FROM (${largest}) AS largest ORDER BY ${order.join()} LIMIT page.size) AS found`,
      ),
    };
  }

  get find(): { readonly one: Statement; readonly many: Statement } {
    return {
      one: this.statement('find', this.query().where('entity.id = $1').getQuery()),
      many: this.statement('find_many', this.query().where('entity.id = ANY ($1::bigint[])').getQuery()),
    };
  }

  /**
   * The statements that insert one row, several rows, and rows with their idempotency keys. The values of the last two are
   * arrays, one of each column. `many` returns the ids in the order of its rows.
   */
  inserts(columns: readonly ColumnMetadata[]): Readonly<Record<'one' | 'many' | 'once', Statement>> {
    const table = this.escape(this.metadata.tablePath);
    const list = columns.map(({ databaseName }) => this.driver.escape(databaseName));
    const names = list.join(', ');
    const types = columns.map((column) => this.typeOf(column));
    const arrays = types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
    const values = types.map((_, index) => `$${index + 1}`).join(', ');
    return {
      one: this.statement('insert', `INSERT INTO ${table} (${names}) VALUES (${values}) RETURNING id`),
      many: this.statement(
        'insert_many',
        // Ids are assigned in the order of the rows, and the rows are returned in the order of the ids.
        `WITH added AS (
          INSERT INTO ${table} (${names})
          SELECT ${names} FROM unnest(${arrays}) WITH ORDINALITY AS new (${names}, "position of the row")
          ORDER BY "position of the row"
          RETURNING id
        ) SELECT id FROM added ORDER BY id`,
      ),
      once: this.statement('insert_once', insertOnceText(table, list, types)),
    };
  }

  private query(): SelectQueryBuilder<Entity> {
    return this.repository.createQueryBuilder('entity');
  }

  /** The columns by which pages are sorted: those of the index that begins with the filters, if there is one, and the id. */
  private orderOf(filters: readonly ColumnMetadata[]): readonly ColumnMetadata[] {
    const [id] = this.metadata.primaryColumns as [ColumnMetadata];
    const index = indicesOf(this.metadata).find(
      ({ columns, where }) =>
        !where &&
        columns.indexOf(id) === filters.length &&
        columns.slice(0, filters.length).every((column) => filters.includes(column)),
    );
    return index?.columns.slice(0, filters.length + 1) ?? [id];
  }

  /** A statement. Another text has another name, also that of another entity on the same table. */
  private statement(kind: string, text: string): Statement {
    const digest = hash('sha1', text);
    const name = `${this.metadata.tablePath}_${kind} ${digest.slice(0, 8)}`;
    return { name: Buffer.byteLength(name) <= MAX_NAME_BYTES ? name : digest, text };
  }

  private typeOf(column: ColumnMetadata): string {
    const { enumName } = column;
    if (enumName === undefined) return typeNameOf(column);
    const { schema } = this.metadata;
    return this.escape(schema === undefined ? enumName : `${schema}.${enumName}`);
  }

  private escape(path: string): string {
    return path
      .split('.')
      .map((part) => this.driver.escape(part))
      .join('.');
  }
}

/** A constructor, and not a function that returns objects, because V8 then knows in advance how many members they have. */
function entityClass<Entity>(columns: readonly ColumnMetadata[]): new (row: readonly unknown[]) => Entity {
  const names = columns.map(({ propertyName }) => propertyName);
  const isConverted = ({ transformer, type, enum: labels }: ColumnMetadata): boolean =>
    Boolean(transformer) ||
    CONVERTED_TYPES.includes(type) ||
    labels?.some((label) => typeof label === 'number') === true;
  const converted = [...columns.entries()].filter(([, column]) => isConverted(column));
  return function (this: Record<string, unknown>, row: readonly unknown[]) {
    for (let index = 0; index < names.length; index++) this[names[index] as string] = row[index];
    for (const [index, column] of converted) this[column.propertyName] = readValue(column, row[index]);
  } as unknown as new (row: readonly unknown[]) => Entity;
}

function nameOf({ propertyPath }: ColumnMetadata): string {
  return `entity.${propertyPath}`;
}

import { hash } from 'node:crypto';
import type { EntityMetadata, ObjectLiteral, Repository, SelectQueryBuilder } from 'typeorm';
import { StartupError } from '#runtime';
import { insertOnceText } from '#idempotency';
import { compareInt64Texts } from '#json';
import type { Statement } from '#postgres';
import { MAX_PAGE_SIZE, type Sorted } from './keyset.js';
import { type Bounds, groupsAfter, nameOf, parametersOf, type SortedColumn, sortedColumns } from './sorted-columns.js';
import { type ColumnMetadata, indicesOf, readValue, typeNameOf, writtenValue } from './typeorm.internals.js';

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
export const MAX_COLUMNS = 53;

/** PostgreSQL tells prepared statements apart by the first bytes of their names. */
const MAX_NAME_BYTES = 63;

/** Types whose values TypeORM converts when it reads them, beside enumerations of numbers and arrays. */
const CONVERTED_TYPES = new Set<unknown>(
  ['date', 'time', 'simple-array', 'simple-json', Date].concat([
    'timestamp',
    'timestamptz',
    'timestamp with time zone',
    'timestamp without time zone',
  ]),
);

/** Types whose values TypeORM passes unchanged to PostgreSQL, beside enumerations. */
const PASSED_TYPES = new Set<unknown>(['bigint', 'integer', 'smallint', 'text', 'uuid', 'varchar', Number, String]);

/** The values of the last row of a page, by which the next one starts. */
export type Start = readonly (string | null)[];

/** The SQL of pages, look-ups and inserts of an entity, derived from TypeORM's metadata. */
export class EntityStatements<Entity extends ObjectLiteral> {
  private readonly metadata: EntityMetadata;
  private readonly driver: EntityMetadata['dataSource']['driver'];
  /** The columns whose values TypeORM converts before it writes them. */
  private readonly converted: ReadonlySet<ColumnMetadata>;
  /** The class that makes an entity of a row. */
  readonly Entity: new (row: readonly unknown[]) => Entity;
  private readonly sorted: readonly SortedColumn[];

  /**
   * @param order of the pages
   * @throws StartupError when the primary key of the entity is no generated bigint `id`, or pages cannot have this order
   */
  constructor(
    private readonly repository: Repository<Entity>,
    order: readonly Sorted[] = [{ name: 'id', direction: 'ASC', nulls: 'LAST' }],
  ) {
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
    this.sorted = sortedColumns(this.metadata, order, (column) => this.typeOf(column));
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
        values.push(typeof value === 'bigint' ? String(value) : column.isArray ? arrayText(value) : value);
      }
      bit *= 2;
    }
    return { key, columns, values };
  }

  /**
   * The parameters of the values of a cursor.
   *
   * @throws ApiError INVALID_CURSOR when no row can have these values
   */
  startOf(values: readonly (string | null)[]): Start {
    return parametersOf(this.sorted, values);
  }

  /** The values of a row of `pages` for its cursor. */
  lastOf(row: readonly unknown[]): Record<string, string | null> {
    let at = this.metadata.columns.length;
    const values = this.sorted.map(({ column, exact }) => [
      column.propertyName,
      row[exact ? at++ : this.metadata.columns.indexOf(column)],
    ]);
    return Object.fromEntries(values) as Record<string, string | null>;
  }

  /** Whether a row of `pages(…).many` comes before another one, as a negative number, or behind it. */
  compare(one: readonly unknown[], other: readonly unknown[]): number {
    const [{ column, direction }] = this.sorted as readonly [SortedColumn];
    if (this.sorted.length > 1) return Number(one.at(-2)) - Number(other.at(-2));
    const id = this.metadata.columns.indexOf(column);
    return compareInt64Texts(one[id] as string, other[id] as string) * (direction === 'ASC' ? 1 : -1);
  }

  /** Completes TypeORM's query of a page, of the alias `entity`, with the values for cursors, `sort_0` and so on. */
  page(query: SelectQueryBuilder<Entity>, { columns, values }: Given, start: Start | undefined, limit: number) {
    const bounds = start?.map((value, index) => (value === null ? undefined : this.bound(index, `:start${index}`)));
    const { groups, order } = this.rowsOf(columns, bounds, (filter) => `:value${filter}`);
    const [conditions = [], ...others] = groups;
    if (others.length === 0) conditions.forEach((condition) => query.andWhere(condition));
    else {
      const ids = groups.map((group) => `(${this.select(group, order, limit).select('entity.id').getQuery()})`);
      query.where(`entity.id IN (${ids.join(' UNION ALL ')})`);
    }
    sortBy(query, order);
    this.sorted.forEach((sorted, index) =>
      query.addSelect(sorted.exact?.(nameOf(sorted)) ?? `(${nameOf(sorted)})`, `sort_${index}`),
    );
    (start ?? []).forEach((value, index) => query.setParameter(`start${index}`, value));
    values.forEach((value, index) => query.setParameter(`value${index}`, value));
    return query.limit(limit);
  }

  /** The values for a cursor in a raw row of `page`. */
  lastOfRaw(raw: Readonly<Record<string, string | null>>): Record<string, string | null> {
    return Object.fromEntries(
      this.sorted.map(({ column }, index) => [column.propertyName, raw[`sort_${index}`] as string | null]),
    );
  }

  /**
   * The statements that read one page, and several pages at once. The values are those of the start that are not null, and the
   * filters; of `many`, arrays of each value of the starts, of row limits and of each filter.
   *
   * @param start of one of the pages; the others have nulls at the same places. Undefined for first pages
   */
  pages(filters: readonly ColumnMetadata[], start?: Start) {
    const given = (start ?? []).flatMap((value, index) => (value === null ? [] : [index]));
    const boundsOf = (sqlOf: (position: number) => string): Bounds | undefined =>
      start?.map((value, index) => (value === null ? undefined : this.bound(index, sqlOf(given.indexOf(index)))));
    const select = (limit: number, bounds: Bounds | undefined, valueOf: (filter: number) => string): string => {
      const { groups, order } = this.rowsOf(filters, bounds, valueOf);
      const parts = groups.map((group) => this.select(group, order, limit).getQuery());
      if (parts.length === 1) return parts[0] as string;
      return `SELECT * FROM (${parts.map((part) => `(${part})`).join(' UNION ALL ')}) AS parts (${names}) ORDER BY ${this.orderOf(order)} LIMIT ${limit}`;
    };
    const count = this.metadata.columns.length + this.sorted.filter(({ exact }) => exact).length;
    const names = Array.from({ length: count }, (_, index) => `c${index}`).join();
    const largest = select(
      MAX_ROWS,
      boundsOf((position) => `page.start_${position}`),
      (filter) => `page.wanted_${filter}`,
    );
    const order = this.orderOf(this.rowsOf(filters, undefined, () => '').order);
    // The order of PostgreSQL is that of collations, which nothing here knows. Ids are compared without it.
    const place = this.sorted.length > 1 ? `, row_number() OVER (ORDER BY ${order}) AS place` : '';
    const types = [
      ...given.map((index) => this.sorted[index]?.type),
      'int',
      ...filters.map((filter) => this.sentType(filter)),
    ];
    const columns = [
      ...given.map((_, position) => `start_${position}`),
      'size',
      ...filters.map((_, index) => `wanted_${index}`),
    ];
    const one: Statement[] = [];
    return {
      // The limit is part of the text: as a parameter, PostgreSQL could not estimate how few rows it means.
      one: (limit: number): Statement =>
        (one[limit] ??= this.statement(
          `page_${limit}`,
          select(
            limit,
            boundsOf((position) => `$${position + 1}`),
            (filter) => `$${given.length + filter + 1}`,
          ),
        )),
      // The inner limit is a constant: of `size` PostgreSQL would assume a tenth of the table, and with many rows compile the
      // statement (JIT) at each execution, which takes longer than running it.
      many: this.statement(
        'page_many',
        `SELECT found.*, position
          FROM unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})
            WITH ORDINALITY AS page (${columns.join(', ')}, position)
          CROSS JOIN LATERAL (
            SELECT *${place} FROM (${largest}) AS largest (${names}) ORDER BY ${order} LIMIT page.size
          ) AS found`,
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
    const read = columns.map((column, index) => this.received(column, list[index] as string)).join(', ');
    const types = columns.map((column) => this.sentType(column));
    const arrays = types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
    const values = types.map((_, index) => `$${index + 1}`).join(', ');
    return {
      one: this.statement('insert', `INSERT INTO ${table} (${names}) VALUES (${values}) RETURNING id`),
      many: this.statement(
        'insert_many',
        // Ids are assigned in the order of the rows, and the rows are returned in the order of the ids.
        `WITH added AS (
          INSERT INTO ${table} (${names})
          SELECT ${read} FROM unnest(${arrays}) WITH ORDINALITY AS new (${names}, "position of the row")
          ORDER BY "position of the row"
          RETURNING id
        ) SELECT id FROM added ORDER BY id`,
      ),
      once: this.statement('insert_once', insertOnceText(table, list, types, read)),
    };
  }

  private query(): SelectQueryBuilder<Entity> {
    return this.repository.createQueryBuilder('entity');
  }

  /** The conditions of a page's rows, in groups that follow one another, and the columns that sort it. */
  private rowsOf(
    filters: readonly ColumnMetadata[],
    bounds: Bounds | undefined,
    valueOf: (filter: number) => string,
  ): { readonly groups: string[][]; readonly order: readonly SortedColumn[] } {
    const wanted = (filter: ColumnMetadata): string => this.received(filter, valueOf(filters.indexOf(filter)));
    const prefix = this.prefixOf(filters);
    const order = [...prefix, ...this.sorted];
    if (prefix.length === 0) {
      const equal = filters.map((column) => `entity.${column.propertyPath} = ${wanted(column)}`);
      const groups = bounds === undefined ? [[]] : groupsAfter(order, bounds);
      return { order, groups: groups.map((group) => [...group, ...equal]) };
    }
    // Only the index can serve these row comparisons. With `status = :status` PostgreSQL might scan the primary key and skip
    // rows of other statuses: the whole table, if the status is rare.
    const [names, values] = [prefix.map(nameOf).join(), prefix.map(({ column }) => wanted(column))];
    const [from, to] = prefix[0]?.direction === 'ASC' ? ['>=', '<='] : ['<=', '>='];
    const [group = []] =
      bounds === undefined ? [[`(${names}) ${from} (${values.join()})`]] : groupsAfter(order, [...values, ...bounds]);
    return { order, groups: [[...group, `(${names}) ${to} (${values.join()})`]] };
  }

  /** The filters in the order of an index that begins with them and goes on with the order of pages; none without one. */
  private prefixOf(filters: readonly ColumnMetadata[]): readonly SortedColumn[] {
    const [first] = this.sorted as readonly [SortedColumn];
    const { direction } = first;
    if (this.sorted.some((sorted) => sorted.nulls !== undefined || sorted.direction !== direction)) return [];
    const index = indicesOf(this.metadata).find(
      ({ columns, where }) =>
        !where &&
        columns.slice(0, filters.length).every((column) => filters.includes(column)) &&
        this.sorted.every(({ column }, at) => columns[filters.length + at] === column),
    );
    return (index?.columns ?? []).slice(0, filters.length).map((column) => ({ ...first, column, exact: undefined }));
  }

  /** The query of some rows of a page, with the texts of the columns that sort it. */
  private select(
    conditions: readonly string[],
    order: readonly SortedColumn[],
    limit: number,
  ): SelectQueryBuilder<Entity> {
    const query = this.query().limit(limit);
    conditions.forEach((condition) => query.andWhere(condition));
    sortBy(query, order);
    this.sorted.forEach((sorted, index) => {
      if (sorted.exact) query.addSelect(sorted.exact(nameOf(sorted)), `sort_${index}`);
    });
    return query;
  }

  /** The order of rows whose columns are named by their positions. */
  private orderOf(order: readonly SortedColumn[]): string {
    return order
      .map(({ column, direction, nulls }) => {
        const name = `c${this.metadata.columns.indexOf(column)}`;
        return `${name} ${direction}${nulls === undefined ? '' : ` NULLS ${nulls}`}`;
      })
      .join();
  }

  private bound(index: number, sql: string): string {
    return `CAST(${sql} AS ${this.sorted[index]?.type})`;
  }

  /** The type in which a value is sent, in an array of its like: one of PostgreSQL's arrays as its text, or `unnest` would flatten it. */
  private sentType(column: ColumnMetadata): string {
    return column.isArray ? 'text' : this.typeOf(column);
  }

  /** SQL for a value that was sent by `sentType`. */
  private received(column: ColumnMetadata, sql: string): string {
    return column.isArray ? `CAST(${sql} AS ${this.typeOf(column)}[])` : sql;
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
  const converted = [...columns.entries()].filter(([, column]) => isConverted(column));
  return function (this: Record<string, unknown>, row: readonly unknown[]) {
    for (let index = 0; index < names.length; index++) this[names[index] as string] = row[index];
    for (const [index, column] of converted) this[column.propertyName] = readValue(column, row[index]);
  } as unknown as new (row: readonly unknown[]) => Entity;
}

/** Whether TypeORM converts what it reads. */
function isConverted({ transformer, type, enum: labels, isArray }: ColumnMetadata): boolean {
  const hasNumbers = labels?.some((label) => typeof label === 'number') === true;
  return Boolean(transformer) || isArray || CONVERTED_TYPES.has(type) || hasNumbers;
}

function sortBy(query: SelectQueryBuilder<ObjectLiteral>, order: readonly SortedColumn[]): void {
  for (const sorted of order) {
    query.addOrderBy(nameOf(sorted), sorted.direction, sorted.nulls && (`NULLS ${sorted.nulls}` as const));
  }
}

type Element = string | number | bigint | boolean | null | undefined;

/** PostgreSQL's text of an array; any other value is left as it is. */
function arrayText(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  const elements = value.map((element: Element | Element[]) => {
    if (Array.isArray(element)) return arrayText(element);
    return element == null ? 'NULL' : `"${String(element).replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join()}}`;
}

import { hash } from 'node:crypto';
import type { EntityMetadata, ObjectLiteral, Repository, SelectQueryBuilder } from 'typeorm';
import { StartupError } from '#runtime';
import { insertOnceText } from './idempotency/idempotency-key.repository.js';
import { ApiError, INVALID_CURSOR } from '#errors';
import { compareInt64Texts } from '#json';
import type { Statement } from '#postgres';
import { type Keyset, MAX_PAGE_SIZE } from './cursors.js';
import { type SortedColumn, sortedColumns } from './sorted-columns.js';
import { type ColumnMetadata, readValue, typeNameOf, writtenValue } from './typeorm.internals.js';

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

/** Types whose values TypeORM reads and writes unchanged, beside enumerations of texts. */
const PASSED_TYPES = new Set<unknown>(['bigint', 'integer', 'smallint', 'text', 'uuid', 'varchar', Number, String]);

/** A row as PostgreSQL returns it: its columns in the order of the entity, and what a statement adds. */
export type Row = readonly unknown[];

/** The SQL of pages, look-ups and inserts of an entity, derived from TypeORM's metadata. */
export class EntitySql<Entity extends ObjectLiteral> {
  private readonly metadata: EntityMetadata;
  private readonly driver: EntityMetadata['dataSource']['driver'];
  /** The columns whose values TypeORM may convert. */
  private readonly converted: ReadonlySet<ColumnMetadata>;
  /** The class that makes an entity of a row. */
  readonly Entity: new (row: Row) => Entity;
  private readonly sorted: readonly SortedColumn[];
  private readonly direction: 'ASC' | 'DESC';
  private readonly isById: boolean;
  /** Where a row has the texts for its cursor. */
  private readonly lastAt: readonly number[];

  /**
   * @param order of the pages
   * @throws StartupError when the primary key of the entity is no generated bigint `id`, a relation is eager, or pages cannot have
   *   this order
   */
  constructor(
    private readonly repository: Repository<Entity>,
    order: Pick<Keyset<string>, 'names' | 'direction'> = { names: ['id'], direction: 'ASC' },
  ) {
    this.metadata = repository.metadata;
    this.driver = this.metadata.dataSource.driver;
    const { columns, primaryColumns, eagerRelations, name } = this.metadata;
    this.converted = new Set(columns.filter((column) => !isPassed(column)));
    this.Entity = entityClass(columns, this.converted);
    this.Entity.prototype = Object.getPrototypeOf(repository.create()) as object;
    const isOther = (id: ColumnMetadata): boolean =>
      id.databasePath !== 'id' || !id.isGenerated || this.typeOf(id) !== 'bigint';
    if (primaryColumns.some(isOther) || eagerRelations.length > 0) {
      throw new StartupError(
        `A SharedRepository needs a generated bigint id as primary key, and no eager relation. For ${name}, use TypeORM's Repository.`,
      );
    }
    this.sorted = sortedColumns(this.metadata, order.names, (column) => this.typeOf(column));
    this.direction = order.direction;
    this.isById = this.sorted.length === 1;
    const exact = this.sorted.filter((sorted) => sorted.exact);
    this.lastAt = this.sorted.map((sorted) =>
      sorted.exact ? columns.length + exact.indexOf(sorted) : columns.indexOf(sorted.column),
    );
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
   * The parameters of the texts of a cursor.
   *
   * @throws ApiError INVALID_CURSOR for a text that is no time
   */
  startOf(texts: readonly string[]): readonly string[] {
    return texts.map((text, index) => {
      const { parameterOf } = this.sorted[index] as SortedColumn;
      const parameter = parameterOf ? parameterOf(text) : text;
      if (parameter === undefined) throw new ApiError(INVALID_CURSOR);
      return parameter;
    });
  }

  /**
   * The statements that read one page, and several pages at once. The values are those of the start, none for first pages, and of
   * the filters; of `many`, arrays of each, and of row limits.
   */
  pages(filters: readonly ColumnMetadata[], kind: 'first' | 'next') {
    const starts = kind === 'first' ? [] : this.sorted;
    const types = [...starts.map(({ type }) => type), ...filters.map((filter) => this.sentType(filter))];
    const select = (limit: number, sqlOf: (parameter: number) => string): string =>
      this.findRows(this.query(), filters, kind, sqlOf).limit(limit).getQuery();
    const largest = select(MAX_ROWS, (parameter) => `page.value_${parameter}`);
    const order = this.orderOf(filters)
      .map((column) => `${this.metadata.columns.indexOf(column) + 1} ${this.direction}`)
      .join();
    const one: Statement[] = [];
    return {
      // The limit is part of the text: as a parameter, PostgreSQL could not estimate how few rows it means.
      one: (limit: number): Statement =>
        (one[limit] ??= this.statement(
          `page_${limit}`,
          select(limit, (parameter) => `$${parameter + 1}`),
        )),
      // The inner limit is a constant: of `size` PostgreSQL would assume a tenth of the table, and with many rows compile the
      // statement (JIT) at each execution, which takes longer than running it.
      many: this.statement(
        'page_many',
        `SELECT found.*, position
          FROM unnest(${[...types, 'int'].map((type, index) => `$${index + 1}::${type}[]`).join(', ')})
            WITH ORDINALITY AS page (${types.map((_, parameter) => `value_${parameter}, `).join('')}size, position)
          CROSS JOIN LATERAL (SELECT * FROM (${largest}) AS largest ORDER BY ${order} LIMIT page.size) AS found
          ${this.isById ? '' : `ORDER BY position, ${order}`}`,
      ),
    };
  }

  /** The rows of each of several pages, from those that `pages(…).many` returns. */
  pagesOf(rows: readonly Row[], count: number): readonly (readonly Row[])[] {
    const pages = Array.from({ length: count }, (): Row[] => []);
    // PostgreSQL counts positions from 1.
    for (const row of rows) pages[Number(row.at(-1)) - 1]?.push(row);
    // PostgreSQL usually returns rows of a join in order but does not promise it. To sort them by id, too, would take it 4 to 8 µs
    // a page; to see here that they are sorted takes less than 1.
    const [id] = this.lastAt as readonly [number];
    const sign = this.direction === 'ASC' ? 1 : -1;
    const compare = (one: Row, other: Row): number => sign * compareInt64Texts(one[id] as string, other[id] as string);
    const isSorted = (page: readonly Row[]): boolean => page.every((row, at) => compare(page[at - 1] ?? row, row) <= 0);
    if (this.isById) for (const page of pages) if (!isSorted(page)) page.sort(compare);
    return pages;
  }

  /** The texts of a row of `pages` for its cursor. */
  lastOf(row: Row): readonly string[] {
    return this.lastAt.map((at) => row[at] as string);
  }

  /** Completes TypeORM's query of a page, of the alias `entity`, with the texts for its cursor, `sort_0` and so on. */
  page(query: SelectQueryBuilder<Entity>, { columns, values }: Given, start: readonly string[], limit: number) {
    this.findRows(query, columns, start.length === 0 ? 'first' : 'next', (parameter) => `:value${parameter}`);
    this.sorted.forEach(({ column, exact }, index) => exact ?? query.addSelect(`(${nameOf(column)})`, `sort_${index}`));
    [...start, ...values].forEach((value, parameter) => query.setParameter(`value${parameter}`, value));
    return query.limit(limit);
  }

  /** The texts for a cursor in a raw row of `page`. */
  lastOfRaw(raw: Readonly<Record<string, string>>): readonly string[] {
    return this.sorted.map((_, index) => raw[`sort_${index}`] as string);
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

  /**
   * Completes a query of the alias `entity` with the conditions and the order of a page, and the exact texts for its cursor.
   *
   * @param sqlOf the SQL of a parameter: those of the start, then those of the filters
   */
  private findRows(
    query: SelectQueryBuilder<Entity>,
    filters: readonly ColumnMetadata[],
    kind: 'first' | 'next',
    sqlOf: (parameter: number) => string,
  ): SelectQueryBuilder<Entity> {
    const start = kind === 'first' ? [] : this.sorted.map(({ type }, index) => `CAST(${sqlOf(index)} AS ${type})`);
    const wanted = new Map(
      filters.map((filter, index) => [filter, this.received(filter, sqlOf(start.length + index))]),
    );
    const order = this.orderOf(filters);
    const prefix = order.slice(0, -this.sorted.length);
    const compare = (columns: readonly ColumnMetadata[], sign: string, values: readonly unknown[]): void =>
      void query.andWhere(`(${columns.map(nameOf).join()}) ${sign} (${values.join()})`);
    const [behind, before] = this.direction === 'ASC' ? ['>', '<'] : ['<', '>'];
    const values = prefix.map((column) => wanted.get(column));
    if (start.length > 0) compare(order, behind, [...values, ...start]);
    if (prefix.length > 0) {
      // Only the index can serve these row comparisons. With `status = :status` PostgreSQL might scan the primary key and skip
      // rows of other statuses: the whole table, if the status is rare.
      if (start.length === 0) compare(prefix, `${behind}=`, values);
      compare(prefix, `${before}=`, values);
    } else {
      for (const [filter, value] of wanted) query.andWhere(`${nameOf(filter)} = ${value}`);
    }
    for (const column of order) query.addOrderBy(nameOf(column), this.direction);
    this.sorted.forEach(({ column, exact }, index) => exact && query.addSelect(exact(nameOf(column)), `sort_${index}`));
    return query;
  }

  /** The columns that sort a page: the filters as in an index that begins with them and goes on with the order, then the order. */
  private orderOf(filters: readonly ColumnMetadata[]): readonly ColumnMetadata[] {
    const sorted = this.sorted.map(({ column }) => column);
    const index = this.metadata.indices.find(
      ({ columns, where }) =>
        !where &&
        columns.slice(0, filters.length).every((column) => filters.includes(column)) &&
        sorted.every((column, at) => columns[filters.length + at] === column),
    );
    return [...(index?.columns ?? []).slice(0, filters.length), ...sorted];
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
    return path.replace(/[^.]+/g, (part) => this.driver.escape(part));
  }
}

/**
 * A constructor, and not a function that returns objects, because V8 then knows in advance how many members they have. The first
 * ones are written out: V8 looks a name up at a place that has had others, as in a loop, or of several entities here.
 */
function entityClass<Entity>(
  columns: readonly ColumnMetadata[],
  isConverted: ReadonlySet<ColumnMetadata>,
): new (row: Row) => Entity {
  const names = columns.map(({ propertyName }) => propertyName);
  const [a = '', b, c, d] = names;
  const converted = [...columns.entries()].filter(([, column]) => isConverted.has(column));
  return function (this: Record<string, unknown>, row: Row) {
    this[a] = row[0];
    if (b !== undefined) this[b] = row[1];
    if (c !== undefined) this[c] = row[2];
    if (d !== undefined) this[d] = row[3];
    for (let index = 4; index < names.length; index++) this[names[index] as string] = row[index];
    for (const [index, column] of converted) this[column.propertyName] = readValue(column, row[index]);
  } as unknown as new (row: Row) => Entity;
}

/** Whether TypeORM leaves the values as they are. */
function isPassed({ transformer, type, enum: labels, isArray }: ColumnMetadata): boolean {
  return (
    !transformer && !isArray && (PASSED_TYPES.has(type) || labels?.every((label) => typeof label === 'string') === true)
  );
}

/** A column in SQL of the alias `entity`, as TypeORM's query builders replace it. */
function nameOf({ propertyPath }: ColumnMetadata): string {
  return `entity.${propertyPath}`;
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

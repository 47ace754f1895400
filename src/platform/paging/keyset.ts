import { crc32 } from 'node:zlib';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';
import { ApiError } from '../errors/api-error.js';
import { INVALID_CURSOR } from '../errors/error-catalogue.js';

/** `int64`, or a text with its largest length in characters. */
type ColumnType = 'int64' | { readonly maxLength: number };

type Columns = Readonly<Record<string, ColumnType>>;

/** The values of one row in the columns of the order. */
export type Position<C extends Columns> = { readonly [Name in keyof C]: C[Name] extends 'int64' ? bigint : string };

/** A row or entity. An int64 is a bigint or a decimal text, as PostgreSQL and TypeORM return it. */
type Row<C extends Columns> = { readonly [Name in keyof C]: C[Name] extends 'int64' ? bigint | string : string };

/** The query parameters that filter a list, in any order. Undefined ones do not count. */
export type Filters = Readonly<Record<string, Filter | readonly Filter[] | undefined>>;

type Filter = string | number | bigint | boolean | Date;

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined;
}

/** The query parameters of a page. */
export interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/*
 * A cursor holds the last row of a page and the filters of its list: a version byte, the CRC-32 of the filters, the value
 * of each column, and the CRC-32 of the bytes before, in base64url. An int64 has 8 bytes; a text has its length in 2
 * bytes and its UTF-8. The checksum detects typing errors, truncation and changes. A cursor gives access to nothing, so
 * it needs no signature.
 */
const VERSION = 1;
const HEAD_LENGTH = 5;
const CHECKSUM_LENGTH = 4;

/** The pattern of every cursor, for the document. */
export const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

/**
 * The sort order of a list, and its pages. Each page begins after the last row of the previous one. So inserted and deleted
 * rows neither hide nor repeat others, and the thousandth page costs as much as the first.
 *
 * @example new Keyset({ id: 'int64' })
 * @example new Keyset({ name: { maxLength: 255 }, id: 'int64' })
 * @example new Keyset({ id: 'int64' }, 'descending')
 */
export class Keyset<const C extends Columns> {
  private readonly columns: readonly (readonly [name: string, type: ColumnType])[];

  /**
   * @param columns the sort columns, by their names in rows and entities. Together they must be unique, none may be null, and
   *   an index must have them in this order.
   * @param direction the direction of all columns: with `descending` the largest values come first
   */
  constructor(
    columns: C,
    private readonly direction: 'ascending' | 'descending' = 'ascending',
  ) {
    this.columns = Object.entries(columns);
  }

  /** Twice the length of the longest cursor, in characters, so that cursors may grow. For the document. */
  get maxCursorLength(): number {
    // A character has at most 4 bytes of UTF-8; 4 characters of base64url hold 3 bytes.
    const lengths = this.columns.map(([, type]) => (type === 'int64' ? 8 : 2 + 4 * type.maxLength));
    const bytes = lengths.reduce((sum, length) => sum + length, HEAD_LENGTH + CHECKSUM_LENGTH);
    return 2 * Math.ceil((bytes * 4) / 3);
  }

  /** The cursor of the page after a row. */
  encode(last: Row<C>, filters: Filters): string {
    const values = this.columns.map(([name, type]) => bytesOf(last[name] as bigint | string, type));
    const content = Buffer.concat([Buffer.of(VERSION), uint32(checksumOf(filters)), ...values]);
    return Buffer.concat([content, uint32(crc32(content))]).toString('base64url');
  }

  /**
   * The row after which the page of a cursor begins; undefined without a cursor.
   *
   * @throws ApiError INVALID_CURSOR when this service did not make the cursor, or made it for other filters
   */
  decode(cursor: string | undefined, filters: Filters): Position<C> | undefined {
    if (cursor === undefined) return undefined;
    const bytes = Buffer.from(cursor, 'base64url');
    const end = bytes.length - CHECKSUM_LENGTH;
    // Node's decoder accepts any text, so compare the canonical encoding.
    const isOurs =
      end >= HEAD_LENGTH &&
      bytes.toString('base64url') === cursor &&
      bytes.readUInt8(0) === VERSION &&
      bytes.readUInt32BE(end) === crc32(bytes.subarray(0, end));
    const position = isOurs ? this.decodeValues(bytes.subarray(HEAD_LENGTH, end)) : undefined;
    if (position === undefined) throw new ApiError(INVALID_CURSOR);
    if (bytes.readUInt32BE(1) !== checksumOf(filters)) throw otherFilters(Object.keys(filters));
    return position;
  }

  /**
   * Makes a page of rows from a statement of your own. The statement must return the rows after {@link decode}'s position, in
   * this order, and one row more than `limit`, which shows whether another page follows.
   */
  page<R extends Row<C>>(found: readonly R[], { limit }: PageQuery, filters: Filters): Page<R> {
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, nextCursor: last && this.encode(last, filters) };
  }

  /**
   * Reads a page of a TypeORM query, which may have conditions and joins, but no order and no limit. The columns are
   * properties of its main entity. Joined entities are in no particular order.
   *
   * @throws ApiError INVALID_CURSOR
   */
  async read<Entity extends ObjectLiteral & Row<C>>(
    query: SelectQueryBuilder<Entity>,
    { limit, cursor }: PageQuery,
    filters: Filters,
  ): Promise<Page<Entity>> {
    const { orderBys, take, skip, limit: ownLimit, offset } = query.expressionMap;
    if (Object.keys(orderBys).length > 0 || [take, skip, ownLimit, offset].some((own) => own !== undefined)) {
      throw new Error('A query that is read in pages has no order and no limit of its own; the Keyset gives it both.');
    }
    const names = this.columns.map(([name]) => name);
    const position = this.decode(cursor, filters);
    const isAscending = this.direction === 'ascending';
    if (position !== undefined) {
      const columns = names.map((name) => `${query.alias}.${name}`).join();
      const parameters = names.map((name) => `:after_${name}`).join();
      const values = names.map((name) => [`after_${name}`, position[name]]);
      query.andWhere(
        `(${columns}) ${isAscending ? '>' : '<'} (${parameters})`,
        Object.fromEntries(values) as ObjectLiteral,
      );
    }
    for (const name of names) query.addOrderBy(`${query.alias}.${name}`, isAscending ? 'ASC' : 'DESC');
    // Not `limit`, which would count the rows of a join.
    return this.page(await query.take(limit + 1).getMany(), { limit }, filters);
  }

  private decodeValues(bytes: Buffer): Position<C> | undefined {
    let offset = 0;
    const position: Record<string, bigint | string> = {};
    for (const [name, type] of this.columns) {
      const isInt64 = type === 'int64';
      const start = isInt64 ? offset : offset + 2;
      if (start > bytes.length) return undefined;
      const end = isInt64 ? start + 8 : start + bytes.readUInt16BE(offset);
      if (end > bytes.length) return undefined;
      position[name] = isInt64 ? bytes.readBigInt64BE(start) : bytes.toString('utf8', start, end);
      offset = end;
    }
    return offset === bytes.length ? (position as Position<C>) : undefined;
  }
}

function bytesOf(value: bigint | string, type: ColumnType): Buffer {
  if (type === 'int64') return int64(BigInt(value));
  const text = Buffer.from(String(value));
  return Buffer.concat([uint16(text.length), text]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

/** The CRC-32 of the defined filters, independent of their order. A text and a number with the same digits differ. */
function checksumOf(filters: Filters): number {
  let text = '';
  for (const name of Object.keys(filters).sort()) {
    const value = filters[name];
    if (value === undefined) continue;
    text += `${name}:${Array.isArray(value) ? JSON.stringify(value.map(textOf)) : textOf(value as Filter)};`;
  }
  return crc32(text);
}

function textOf(value: Filter): string {
  return typeof value === 'bigint' ? `${value}n` : JSON.stringify(value);
}

function otherFilters(names: readonly string[]): ApiError {
  const [name] = names;
  return new ApiError(
    INVALID_CURSOR,
    names.length === 1
      ? `cursor belongs to a list with another ${name}; send the ${name} it was made with`
      : `cursor belongs to a list with other filters; send ${names.join(', ')} as they were when it was made`,
  );
}

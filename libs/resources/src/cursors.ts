import { crc32 } from 'node:zlib';
import { ApiError, INVALID_CURSOR } from '#errors';
import { int64Of } from '#json';
import { StartupError } from '#runtime';

/** The columns of an order, by their names in rows and entities, the most significant one first. All have one direction. */
export type OrderBy<Column extends string = string> = Readonly<Partial<Record<Column, 'ASC' | 'DESC'>>>;

/** A row or entity. Its id is a bigint or a decimal text, as PostgreSQL and TypeORM return it. */
type Row<Order> = Order extends string
  ? Readonly<Record<Order, bigint | string>>
  : Readonly<Record<keyof Order, bigint | number | boolean | string>>;

/** The row after which a page begins: its id, or the texts of its columns, which are the parameters of a comparison. */
type Start<Order> = Order extends string ? bigint : { readonly [Column in keyof Order]: string };

type Filter = string | number | boolean | Date;
/** The query parameters that filter a list, in any order. Undefined ones do not count. */
export type Filters = Readonly<Record<string, Filter | bigint | readonly Filter[] | undefined>>;

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

/** Items of a page if the request has no `limit`: the usual initial value of the property. */
export const DEFAULT_PAGE_SIZE = 20;

/** Largest number of items of a page. */
export const MAX_PAGE_SIZE = 100;

/*
 * A cursor holds the last row of a page and the filters of its list: a version byte, the CRC-32 of the filters, the row, and the
 * CRC-32 of the bytes before, in base64url. Of an order by one id, the row is the id in 8 bytes. Of any other order, it is the
 * CRC-32 of the list and its order, and for each column the length of its value in 2 bytes and the value in UTF-8.
 * The checksum detects typing errors, truncation and changes. A cursor gives access to nothing, so it needs no signature.
 * Another layout, or other text of the filters, needs another version.
 */
const VERSION_OF_ID = 2;
const VERSION_OF_VALUES = 3;
const FILTERS_AT = 1;
const ROW_AT = 5;
const ID_BYTES = 8;
const CHECKSUM_BYTES = 4;
const LIST_BYTES = 4;
const LENGTH_BYTES = 2;

/** The pattern of every cursor, for the document. */
export const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

/** Most bytes of all values in a cursor, so that the header fields of a response stay below the 4 KiB that proxies take. */
export const MAX_VALUES_BYTES = 2_048;

/** Longer than any cursor, in characters, so that cursors may grow. For the document. */
export const MAX_CURSOR_LENGTH = 4_096;

/**
 * The order of a list, and its pages. Each page begins after the last row of the previous one. So inserted
 * and deleted rows neither hide nor repeat others, and the thousandth page costs as much as the first.
 *
 * @example new Keyset('id')
 * @example new Keyset({ createdAt: 'DESC', id: 'DESC' })
 */
export class Keyset<const Order extends string | OrderBy> {
  /** @internal The columns of the order. */
  readonly names: readonly string[];
  /** @internal */
  readonly direction: 'ASC' | 'DESC';
  private readonly isById: boolean;
  /** The CRC-32 of the list and its order. */
  private readonly list: number;

  /**
   * @param order the id, ascending, by its name in rows and entities: a unique, indexed bigint that is never null. Or several
   *   columns of one direction, which are never null; the last one is unique
   * @param list what tells this list from others with the same order: a cursor is accepted by its own list alone
   * @throws StartupError when the columns have several directions
   */
  constructor(order: Order, list = '') {
    this.isById = typeof order === 'string';
    const given: OrderBy = typeof order === 'string' ? { [order]: 'ASC' } : order;
    const [direction, ...others] = new Set(Object.values(given));
    if ((direction !== 'ASC' && direction !== 'DESC') || others.length > 0) {
      const given = JSON.stringify(order);
      throw new StartupError(`The columns of a list need one direction, 'ASC' or 'DESC', which ${given} has not.`);
    }
    this.names = Object.keys(given);
    this.direction = direction;
    // In the checksum of cursors since nulls had places. These are PostgreSQL's.
    const nulls = direction === 'ASC' ? 'LAST' : 'FIRST';
    this.list = crc32(JSON.stringify([list, this.names.map((name) => ({ name, direction, nulls }))]));
  }

  /**
   * The cursor of the page after a row.
   *
   * @throws TypeError when a value is null or a Date, which has no microseconds, or when the values have more than 2,048 bytes
   */
  encode(last: Row<Order>, filters: Filters): string {
    const values = this.names.map((name) => textOf(name, (last as Readonly<Record<string, string>>)[name]));
    return this.cursorOf(values, filters);
  }

  /** @internal The cursor of the page after the row with these texts, in the order of the columns. */
  cursorOf(values: readonly string[], filters: Filters): string {
    const row = this.isById ? undefined : this.bytesOf(values);
    const bytes = Buffer.allocUnsafe(ROW_AT + (row?.length ?? ID_BYTES) + CHECKSUM_BYTES);
    bytes.writeUInt8(this.isById ? VERSION_OF_ID : VERSION_OF_VALUES);
    bytes.writeUInt32BE(checksumOf(filters), FILTERS_AT);
    if (row) bytes.set(row, ROW_AT);
    else bytes.writeBigInt64BE(int64Of(values[0] as string), ROW_AT);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, -CHECKSUM_BYTES)), bytes.length - CHECKSUM_BYTES);
    return bytes.toString('base64url');
  }

  /**
   * The row after which the page of a cursor begins, undefined without a cursor: its id, or the texts of its columns.
   *
   * @throws ApiError INVALID_CURSOR when this service did not make the cursor, or made it for another list or other filters
   */
  decode(cursor: string | undefined, filters: Filters): Start<Order> | undefined {
    if (cursor === undefined) return undefined;
    const values = this.valuesOf(cursor, filters);
    const start = this.isById
      ? BigInt(values[0] as string)
      : Object.fromEntries(this.names.map((name, index) => [name, values[index]]));
    return start as Start<Order>;
  }

  /** @internal The texts of a cursor, in the order of the columns. Throws as `decode` does. */
  valuesOf(cursor: string, filters: Filters): readonly string[] {
    const bytes = Buffer.from(cursor, 'base64url');
    // Node's decoder accepts any text, so compare the canonical encoding.
    const isOurs =
      bytes.length > ROW_AT + CHECKSUM_BYTES &&
      bytes.toString('base64url') === cursor &&
      bytes.readUInt8() === (this.isById ? VERSION_OF_ID : VERSION_OF_VALUES) &&
      bytes.readUInt32BE(bytes.length - CHECKSUM_BYTES) === crc32(bytes.subarray(0, -CHECKSUM_BYTES));
    const row = bytes.subarray(ROW_AT, -CHECKSUM_BYTES);
    const values = isOurs ? this.valuesIn(row) : undefined;
    if (values === undefined) throw new ApiError(INVALID_CURSOR);
    // Without names: a filter may be no parameter of the client's, such as the tenant.
    if (bytes.readUInt32BE(FILTERS_AT) !== checksumOf(filters))
      throw new ApiError(INVALID_CURSOR, 'cursor was made with other filters; send the same ones as on the first page');
    return values;
  }

  /**
   * Makes a page of the rows that a statement or query builder of yours has found: those after {@link decode}'s row, in the
   * order of the list, and one row more than `limit`, which shows whether another page follows. With a join, TypeORM's `take`
   * counts rows of the entity, and `limit` those of the join.
   */
  page<R extends Row<Order>>(found: readonly R[], { limit }: PageQuery, filters: Filters): Page<R> {
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, nextCursor: last && this.encode(last, filters) };
  }

  private bytesOf(values: readonly string[]): Buffer {
    const texts = values.map((value) => Buffer.from(value));
    const size = texts.reduce((sum, { length }) => sum + length, 0);
    if (size > MAX_VALUES_BYTES) {
      throw new TypeError(
        `A cursor holds ${MAX_VALUES_BYTES} bytes, but ${this.names.join(', ')} of a row have ${size}.`,
      );
    }
    const bytes = Buffer.alloc(LIST_BYTES + LENGTH_BYTES * texts.length + size);
    let at = bytes.writeUInt32BE(this.list);
    for (const text of texts) {
      at = bytes.writeUInt16BE(text.length, at);
      at += text.copy(bytes, at);
    }
    return bytes;
  }

  /** The values that `bytesOf` wrote; undefined if it did not write these bytes for this list. */
  private valuesIn(bytes: Buffer): string[] | undefined {
    if (this.isById) return bytes.length === ID_BYTES ? [String(bytes.readBigInt64BE())] : undefined;
    if (bytes.length < LIST_BYTES || bytes.readUInt32BE() !== this.list) return undefined;
    const values: string[] = [];
    let at = LIST_BYTES;
    while (values.length < this.names.length && at + LENGTH_BYTES <= bytes.length) {
      const end = at + LENGTH_BYTES + bytes.readUInt16BE(at);
      values.push(bytes.toString('utf8', at + LENGTH_BYTES, end));
      at = end;
    }
    const isWhole = values.length === this.names.length && at === bytes.length;
    // PostgreSQL has no text with NUL.
    return isWhole && !values.some((value) => value.includes('\0')) ? values : undefined;
  }
}

function textOf(name: string, value: bigint | number | boolean | string | object | null | undefined): string {
  if (value === undefined || typeof value === 'object') {
    throw new TypeError(
      `A cursor needs ${name} as its exact text: select a time as created_at::text, and coalesce(${name}, …) for null.`,
    );
  }
  return String(value);
}

/** The CRC-32 of the defined filters, independent of their order. A text and a number with the same digits differ. */
function checksumOf(filters: Filters): number {
  let text = '';
  for (const name of Object.keys(filters).sort()) {
    const value = filters[name];
    if (value !== undefined) text += `${name}:${typeof value === 'bigint' ? value : JSON.stringify(value)};`;
  }
  return crc32(text);
}

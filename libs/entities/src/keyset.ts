import { crc32 } from 'node:zlib';
import { ApiError, INVALID_CURSOR } from '#errors';

/** A row or entity. Its id is a bigint or a decimal text, as PostgreSQL and TypeORM return it. */
type Row<Column extends string> = Readonly<Record<Column, bigint | string>>;

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

/** Items of a page if the request has no `limit`. The property must have it as its initial value. */
export const DEFAULT_PAGE_SIZE = 20;

/** Largest number of items of a page. */
export const MAX_PAGE_SIZE = 100;

/*
 * A cursor holds the last id of a page and the filters of its list: a version byte, the CRC-32 of the filters, the id in 8
 * bytes, and the CRC-32 of the bytes before, in base64url. The checksum detects typing errors, truncation and changes. A
 * cursor gives access to nothing, so it needs no signature. Another layout, or other text of the filters, needs another version.
 */
const VERSION = 2;
const FILTERS_AT = 1;
const ID_AT = 5;
const CHECKSUM_AT = 13;
const LENGTH = 17;

/** The pattern of every cursor, for the document. */
export const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

/** Twice the length of a cursor, in characters, so that cursors may grow. For the document. */
export const MAX_CURSOR_LENGTH = 2 * Math.ceil((LENGTH * 4) / 3);

/**
 * The ascending order of a list by an id, and its pages. Each page begins after the last row of the previous one. So inserted
 * and deleted rows neither hide nor repeat others, and the thousandth page costs as much as the first.
 *
 * @example new Keyset('id')
 */
export class Keyset<const Column extends string> {
  /** @param column the id, by its name in rows and entities: a unique, indexed bigint that is never null */
  constructor(private readonly column: Column) {}

  encode(last: Row<Column>, filters: Filters): string {
    const bytes = Buffer.allocUnsafe(LENGTH);
    bytes.writeUInt8(VERSION);
    bytes.writeUInt32BE(checksumOf(filters), FILTERS_AT);
    bytes.writeBigInt64BE(BigInt(last[this.column]), ID_AT);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, CHECKSUM_AT)), CHECKSUM_AT);
    return bytes.toString('base64url');
  }

  /**
   * The id after which the page of a cursor begins; undefined without a cursor.
   *
   * @throws ApiError INVALID_CURSOR when this service did not make the cursor, or made it for other filters
   */
  decode(cursor: string | undefined, filters: Filters): bigint | undefined {
    if (cursor === undefined) return undefined;
    const bytes = Buffer.from(cursor, 'base64url');
    // Node's decoder accepts any text, so compare the canonical encoding.
    const isOurs =
      bytes.length === LENGTH &&
      bytes.toString('base64url') === cursor &&
      bytes.readUInt8() === VERSION &&
      bytes.readUInt32BE(CHECKSUM_AT) === crc32(bytes.subarray(0, CHECKSUM_AT));
    if (!isOurs) throw new ApiError(INVALID_CURSOR);
    if (bytes.readUInt32BE(FILTERS_AT) !== checksumOf(filters)) {
      const names = Object.keys(filters).join(', ');
      throw new ApiError(
        INVALID_CURSOR,
        `cursor was made with other filters; send the same ${names} as on the first page`,
      );
    }
    return bytes.readBigInt64BE(ID_AT);
  }

  /**
   * Makes a page of the rows that a statement or query builder of yours has found: those after {@link decode}'s id, in ascending
   * order, and one row more than `limit`, which shows whether another page follows.
   */
  page<R extends Row<Column>>(found: readonly R[], { limit }: PageQuery, filters: Filters): Page<R> {
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1) : undefined;
    return { items, nextCursor: last && this.encode(last, filters) };
  }
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

import type { EntityMetadata } from 'typeorm';
import { StartupError } from '#runtime';
import { MAX_VALUES_BYTES } from './cursors.js';
import type { ColumnMetadata } from './typeorm.internals.js';

/** How the values of a column get into a cursor and back. */
interface Kind {
  /** SQL for the exact text of a value, which no setting of the session and no parser changes; undefined if it is read so anyway. */
  readonly exact?: (value: string) => string;
  /** The type of a parameter that a value is compared with, if not that of the column. */
  readonly type?: string;
  /** The parameter for an exact text, if not the text; undefined for a text of which there is none: the cursor is forged. */
  readonly parameterOf?: (text: string) => string | undefined;
}

/** A column that a page is sorted by. */
export interface SortedColumn extends Kind {
  readonly column: ColumnMetadata;
  readonly type: string;
}

/** Most bytes of a character in UTF-8. */
const CHARACTER_BYTES = 4;

/** Most bytes of the text of an enumeration, an integer, a uuid or a time. */
const OTHER_BYTES = 36;

const asText = (value: string): string => `CAST(${value} AS text)`;
const asEpoch = (value: string): string => `CAST(extract(epoch FROM ${value}) AS text)`;

/** By the type of the column. The others have no exact text. */
const KINDS: Readonly<Record<string, Kind>> = {
  text: {},
  'character varying': { type: 'text' },
  bigint: {},
  integer: { exact: asText, type: 'bigint' },
  smallint: { exact: asText, type: 'bigint' },
  numeric: { exact: asText },
  uuid: { exact: asText },
  boolean: { exact: asText },
  date: { exact: asEpoch, parameterOf: (text) => timeIn(text) },
  'timestamp without time zone': { exact: asEpoch, parameterOf: (text) => timeIn(text, '') },
  'timestamp with time zone': { exact: asEpoch, parameterOf: (text) => timeIn(text, '+00') },
};

const DAY_MICROS = 86_400_000_000n;
/** The Julian day of 1970-01-01. */
const EPOCH_DAY = 2_440_588;

/**
 * The time of an exact text, the seconds since 1970, by its Julian day: PostgreSQL reads it alike with any setting of a session,
 * also beyond the range of Date.
 *
 * @param zone what follows the time of day; undefined for a date
 */
function timeIn(text: string, zone?: string): string | undefined {
  if (/^-?Infinity$/.test(text)) return text;
  const [, whole, fraction = ''] = /^(-?\d{1,15})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const micros = BigInt(`${whole}${fraction.padEnd(6, '0')}`);
  const ofDay = ((micros % DAY_MICROS) + DAY_MICROS) % DAY_MICROS;
  const day = `J${Number((micros - ofDay) / DAY_MICROS) + EPOCH_DAY}`;
  if (zone === undefined) return day;
  const time = new Date(Number(ofDay / 1_000n)).toISOString().slice(11, 23);
  return `${day} ${time}${String(ofDay % 1_000n).padStart(3, '0')}${zone}`;
}

/** Most bytes of the exact text of a column. NaN if the entity does not bound it. */
function bytesOf({ length, precision, scale }: ColumnMetadata, type: string): number {
  if (type === 'text' || type === 'character varying') return CHARACTER_BYTES * (Number(length) || NaN);
  if (type !== 'numeric') return OTHER_BYTES;
  // Sign, point and a leading zero.
  return precision == null ? NaN : Math.max(precision, Number(scale ?? 0)) + 3;
}

/**
 * The columns of an order.
 *
 * @throws StartupError when the entity has not all of them, or one may be null, has no exact text or no bound
 */
export function sortedColumns(
  { columns, name: entity }: EntityMetadata,
  names: readonly string[],
  typeOf: (column: ColumnMetadata) => string,
): readonly SortedColumn[] {
  const refuse = (reason: string): never => {
    throw new StartupError(`${entity} cannot be sorted by ${names.join(', ')}: ${reason}`);
  };
  let size = 0;
  const sorted = names.map((name): SortedColumn => {
    const column =
      columns.find((each) => each.propertyPath === name) ?? refuse(`it has no column ${name}. Name its properties.`);
    const type = typeOf(column);
    const kind = column.enumName === undefined ? KINDS[type] : {};
    const bytes = bytesOf(column, type);
    if (kind === undefined || column.isArray || column.isNullable || Number.isNaN(bytes)) {
      return refuse(
        `a cursor holds NOT NULL texts with a length, enumerations, integers, numeric with a precision, uuid, boolean, dates and ` +
          `timestamps, but ${name} is another column. Change it, or write a query with a Keyset that sorts by an expression, such ` +
          `as (coalesce(${column.databaseName}, …), id) > (:${name}, :id).`,
      );
    }
    size += bytes;
    return { column, type, ...kind };
  });
  if (size > MAX_VALUES_BYTES) {
    refuse(`their values may have ${size} bytes, and a cursor holds ${MAX_VALUES_BYTES}. Shorten texts.`);
  }
  return sorted;
}

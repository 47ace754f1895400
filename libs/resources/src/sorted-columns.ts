import type { EntityMetadata } from 'typeorm';
import { StartupError } from '#runtime';
import { INT64_MAX, INT64_MIN } from '#json';
import { MAX_VALUES_BYTES } from './cursors.js';
import { type ColumnMetadata, typeNameOf } from './typeorm.internals.js';

/** A column that a page is sorted by. */
export interface SortedColumn {
  readonly column: ColumnMetadata;
  /**
   * SQL for the exact text of a value, which no setting of the session and no parser changes; undefined if the value is
   * read as this text anyway.
   */
  readonly exact: ((value: string) => string) | undefined;
  /** The type of a parameter that a value is compared with. */
  readonly type: string;
  /** The parameter for an exact text. Undefined when no value of the column has this text: the cursor is forged. */
  readonly parameterOf: (text: string) => string | undefined;
}

type Kind = Omit<SortedColumn, 'column'> & {
  /** Most bytes of the exact text. NaN if the entity does not bound it. */
  readonly bytes: number;
};

/** Most bytes of a character in UTF-8. */
const BYTES = 4;

const asText = (value: string): string => `CAST(${value} AS text)`;
const asEpoch = (value: string): string => `CAST(extract(epoch FROM ${value}) AS text)`;
/** By the distance from 2000, because PostgreSQL rounds `epoch` of the last years that it has. */
const asExactEpoch = (value: string): string =>
  `CASE WHEN isfinite(${value}) THEN CAST(extract(epoch FROM ${value} - timestamp '2000-01-01') + 946684800 AS text) ELSE ${asEpoch(value)} END`;
const matching =
  (form: RegExp) =>
  (text: string): string | undefined =>
    form.test(text) ? text : undefined;

/** How the values of a column get into a cursor and back; undefined for types without an exact text. */
function kindOf(column: ColumnMetadata, type: string): Kind | undefined {
  const { enum: labels, enumName, length, precision, scale } = column;
  if (enumName !== undefined && labels !== undefined) {
    const all = labels.map(String);
    const bytes = Math.max(...all.map((label) => Buffer.byteLength(label)));
    return { exact: undefined, type, bytes, parameterOf: (text) => (all.includes(text) ? text : undefined) };
  }
  switch (type) {
    case 'text':
    case 'character varying':
      return { exact: undefined, type: 'text', bytes: BYTES * (Number(length) || NaN), parameterOf: (text) => text };
    case 'bigint':
      return { exact: undefined, type, bytes: 20, parameterOf: int64In };
    case 'integer':
    case 'smallint':
      return { exact: asText, type: 'bigint', bytes: 20, parameterOf: int64In };
    case 'numeric': {
      // Sign, point and a leading zero.
      const bytes = precision == null ? NaN : Math.max(precision, Number(scale ?? 0)) + 3;
      return { exact: asText, type, bytes, parameterOf: matching(/^(-?\d+(\.\d+)?|NaN|-?Infinity)$/) };
    }
    case 'uuid':
      return { exact: asText, type, bytes: 36, parameterOf: matching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/) };
    case 'boolean':
      return { exact: asText, type, bytes: 5, parameterOf: matching(/^(true|false)$/) };
    case 'date':
      return { exact: asEpoch, type, bytes: 24, parameterOf: (text) => timeIn(text, LAST_DAY_OF_DATES) };
    case 'timestamp without time zone':
      return { exact: asExactEpoch, type, bytes: 24, parameterOf: (text) => timeIn(text, LAST_DAY_OF_TIMES, '') };
    case 'timestamp with time zone':
      return {
        exact: (value) => asExactEpoch(`(${value} AT TIME ZONE 'UTC')`),
        type,
        bytes: 24,
        parameterOf: (text) => timeIn(text, LAST_DAY_OF_TIMES, '+00'),
      };
    default:
      return undefined;
  }
}

function int64In(text: string): string | undefined {
  // Eighteen digits are always in range.
  if (/^-?\d{1,18}$/.test(text)) return text;
  if (!/^-?\d{19}$/.test(text)) return undefined;
  const value = BigInt(text);
  return value >= INT64_MIN && value <= INT64_MAX ? text : undefined;
}

const DAY_MICROS = 86_400_000_000n;
/** Julian days: 1970-01-01, the last one of PostgreSQL's times, in the year 294276, and of its dates, in 5874897. They begin with 0. */
const EPOCH_DAY = 2_440_588;
const LAST_DAY_OF_TIMES = 109_203_527;
const LAST_DAY_OF_DATES = 2_147_483_493;

/**
 * The time of an exact text, the seconds since 1970, by its Julian day: PostgreSQL reads it alike with any setting of a session,
 * also beyond the range of Date.
 *
 * @param zone what follows the time of day; undefined for a date
 */
function timeIn(text: string, lastDay: number, zone?: string): string | undefined {
  if (/^-?Infinity$/.test(text)) return text;
  const [, whole, fraction = ''] = /^(-?\d{1,15})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const micros = BigInt(`${whole}${fraction.padEnd(6, '0')}`);
  const ofDay = ((micros % DAY_MICROS) + DAY_MICROS) % DAY_MICROS;
  const day = Number((micros - ofDay) / DAY_MICROS) + EPOCH_DAY;
  if (day < 0 || day > lastDay) return undefined;
  if (zone === undefined) return `J${day}`;
  const time = new Date(Number(ofDay / 1_000n)).toISOString().slice(11, 23);
  return `J${day} ${time}${String(ofDay % 1_000n).padStart(3, '0')}${zone}`;
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
    if (column.isNullable) {
      refuse(
        `${name} may be null. Make the column NOT NULL, or write a query with a Keyset that sorts by an expression, such as ` +
          `(coalesce(${column.databaseName}, …), id) > (:${name}, :id).`,
      );
    }
    const kind = column.isArray ? undefined : kindOf(column, typeOf(column));
    if (kind === undefined) {
      return refuse(
        `${name} is ${column.isArray ? 'an array' : `of the type ${typeNameOf(column)}`}. A cursor holds texts, enumerations, ` +
          'integers, numeric, uuid, boolean, dates and timestamps.',
      );
    }
    const { bytes, ...others } = kind;
    if (Number.isNaN(bytes)) {
      const remedy = typeNameOf(column) === 'numeric' ? 'precision: 20, scale: 2' : `type: 'varchar', length: 200`;
      refuse(
        `a cursor holds its values, and those of ${name} have no limit. Declare one, such as @Column({ ${remedy} }).`,
      );
    }
    size += bytes;
    return { column, ...others };
  });
  if (size > MAX_VALUES_BYTES) {
    refuse(
      `their values may have ${size} bytes, and a cursor holds ${MAX_VALUES_BYTES}. Shorten texts: a character counts ${BYTES}.`,
    );
  }
  return sorted;
}

import type { EntityMetadata } from 'typeorm';
import { ApiError, INVALID_CURSOR } from '#errors';
import { StartupError } from '#runtime';
import { INT64_MAX, INT64_MIN } from '#json';
import { MAX_VALUES_BYTES, type Sorted } from './keyset.js';
import { type ColumnMetadata, typeNameOf } from './typeorm.internals.js';

/** A column that a page is sorted by. */
export interface SortedColumn {
  readonly column: ColumnMetadata;
  readonly direction: 'ASC' | 'DESC';
  /** Where its nulls are; undefined if it has none. */
  readonly nulls: 'FIRST' | 'LAST' | undefined;
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

type Kind = Pick<SortedColumn, 'exact' | 'type' | 'parameterOf'> & {
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
function kindOf(column: ColumnMetadata, typeName: string): Kind | undefined {
  const { enum: labels, enumName, length, precision, scale } = column;
  if (enumName !== undefined && labels !== undefined) {
    const all = labels.map(String);
    const bytes = Math.max(...all.map((label) => Buffer.byteLength(label)));
    return { exact: undefined, type: typeName, bytes, parameterOf: (text) => (all.includes(text) ? text : undefined) };
  }
  switch (typeName) {
    case 'text':
    case 'character varying':
      return { exact: undefined, type: 'text', bytes: BYTES * (Number(length) || NaN), parameterOf: (text) => text };
    case 'bigint':
      return { exact: undefined, type: 'bigint', bytes: 20, parameterOf: int64In };
    case 'integer':
    case 'smallint':
      return { exact: asText, type: 'bigint', bytes: 20, parameterOf: int64In };
    case 'numeric': {
      // Sign, point and a leading zero.
      const bytes = precision == null ? NaN : Math.max(precision, Number(scale ?? 0)) + 3;
      return { exact: asText, type: 'numeric', bytes, parameterOf: matching(/^(-?\d+(\.\d+)?|NaN|-?Infinity)$/) };
    }
    case 'uuid':
      return {
        exact: asText,
        type: 'uuid',
        bytes: 36,
        parameterOf: matching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/),
      };
    case 'boolean':
      return { exact: asText, type: 'boolean', bytes: 5, parameterOf: matching(/^(true|false)$/) };
    case 'date':
      return { exact: asEpoch, type: 'date', bytes: 24, parameterOf: (text) => timeIn(text, END_OF_DATES) };
    case 'timestamp with time zone':
      return {
        exact: (value) => asExactEpoch(`(${value} AT TIME ZONE 'UTC')`),
        type: typeName,
        bytes: 24,
        parameterOf: (text) => timeIn(text, END_OF_TIMES, '+00'),
      };
    case 'timestamp without time zone':
      return { exact: asExactEpoch, type: typeName, bytes: 24, parameterOf: (text) => timeIn(text, END_OF_TIMES, '') };
    default:
      return undefined;
  }
}

function int64In(text: string): string | undefined {
  if (!/^-?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text);
  return value >= INT64_MIN && value <= INT64_MAX ? text : undefined;
}

const MICROS = 1_000_000n;
/** The Gregorian calendar repeats after 400 years. */
const CYCLE_YEARS = 400;
const CYCLE_S = 146_097 * 86_400;
/** The times that PostgreSQL has, in seconds since 1970: from 4714-11-24 BC to 294276, and dates to 5874897. */
const FIRST_TIME = -210_866_803_200;
const END_OF_TIMES = 9_224_318_016_000;
const END_OF_DATES = 185_331_707_078_400;

/**
 * The time of an exact text, the seconds since 1970, as PostgreSQL reads it with any setting of a session. It may be beyond
 * the range of Date.
 *
 * @param end the first second after the last time
 * @param zone what follows the time of day; undefined for a date
 */
function timeIn(text: string, end: number, zone?: string): string | undefined {
  if (/^-?Infinity$/.test(text)) return text;
  const [, whole, fraction = ''] = /^(-?\d{1,15})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const micros = BigInt(`${whole}${fraction.padEnd(6, '0')}`);
  const ofSecond = ((micros % MICROS) + MICROS) % MICROS;
  const second = Number((micros - ofSecond) / MICROS);
  if (second < FIRST_TIME || second >= end) return undefined;
  const cycle = Math.floor(second / CYCLE_S);
  const date = new Date((second - cycle * CYCLE_S) * 1_000);
  const year = date.getUTCFullYear() + cycle * CYCLE_YEARS;
  const [day, time] = [date.toISOString().slice(4, 10), date.toISOString().slice(11, 19)];
  const ofDay = zone === undefined ? '' : ` ${time}.${String(ofSecond).padStart(6, '0')}${zone}`;
  return `${String(year > 0 ? year : 1 - year).padStart(4, '0')}${day}${ofDay}${year > 0 ? '' : ' BC'}`;
}

/**
 * The columns of an order.
 *
 * @throws StartupError when the entity has not all of them, when one has no exact text or no bound, or when the last one is not
 *   the id
 */
export function sortedColumns(
  { columns, name: entity, primaryColumns }: EntityMetadata,
  order: readonly Sorted[],
  typeOf: (column: ColumnMetadata) => string,
): readonly SortedColumn[] {
  const text = order.map(({ name }) => name).join(', ');
  const refuse = (reason: string): never => {
    throw new StartupError(`${entity} cannot be sorted by ${text}: ${reason}`);
  };
  let size = 0;
  const sorted = order.map(({ name, direction, nulls }): SortedColumn => {
    const column =
      columns.find((each) => each.propertyPath === name) ?? refuse(`it has no column ${name}. Name its properties.`);
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
    return { column, direction, nulls: column.isNullable ? nulls : undefined, ...others };
  });
  if (sorted.at(-1)?.column !== primaryColumns[0]) {
    refuse(
      `rows with equal values need an order, too. End it with the id: { ${text}, id: 'ASC' }, each with its direction.`,
    );
  }
  if (size > MAX_VALUES_BYTES) {
    refuse(
      `their values may have ${size} bytes, and a cursor holds ${MAX_VALUES_BYTES}. Shorten texts: a character counts ${BYTES}.`,
    );
  }
  return sorted;
}

/**
 * The parameters of the values of a cursor.
 *
 * @throws ApiError INVALID_CURSOR when columns cannot have these values
 */
export function parametersOf(
  sorted: readonly SortedColumn[],
  values: readonly (string | null)[],
): readonly (string | null)[] {
  return sorted.map(({ nulls, parameterOf }, index) => {
    const text = values[index] ?? null;
    const parameter = text === null ? null : parameterOf(text);
    if (parameter === undefined || (parameter === null && nulls === undefined)) throw new ApiError(INVALID_CURSOR);
    return parameter;
  });
}

/** The SQL for a value after which a page begins; undefined for null. */
export type Bounds = readonly (string | undefined)[];

/**
 * The conditions of the rows after a row, in one or several groups. The rows of a group follow those of the group before. An
 * index serves all conditions of a group, but not several groups in one WHERE.
 */
export function groupsAfter(sorted: readonly SortedColumn[], bounds: Bounds): string[][] {
  const [first, ...others] = sorted;
  if (first === undefined) return [];
  const { direction, nulls } = first;
  const beyond = direction === 'ASC' ? '>' : '<';
  // Never true for a null: such rows must be before the row.
  const isComparable = sorted.every(
    (column, index) => column.direction === direction && bounds[index] !== undefined && column.nulls !== 'LAST',
  );
  if (isComparable) return [[`(${sorted.map(nameOf).join()}) ${beyond} (${bounds.join()})`]];
  const [name, bound] = [nameOf(first), bounds[0]];
  const isSame = bound === undefined ? `${name} IS NULL` : `${name} = ${bound}`;
  const groups = groupsAfter(others, bounds.slice(1)).map((conditions) => [isSame, ...conditions]);
  if (bound !== undefined) groups.push([`${name} ${beyond} ${bound}`]);
  if (bound === undefined && nulls === 'FIRST') groups.push([`${name} IS NOT NULL`]);
  if (bound !== undefined && nulls === 'LAST') groups.push([`${name} IS NULL`]);
  return groups;
}

/** A column in SQL of the alias `entity`, as TypeORM's query builders replace it. */
export function nameOf({ column }: SortedColumn): string {
  return `entity.${column.propertyPath}`;
}

/** The smallest value of `format: int64`, -2^63. */
export const INT64_MIN = -(2n ** 63n);

/** The largest value of `format: int64`, 2^63 - 1. */
export const INT64_MAX = 2n ** 63n - 1n;

/** '-9223372036854775808' */
const MAX_LENGTH = 20;

/** Whether a value is a bigint of the signed 64-bit range. A `number` never is: convert it with {@link toInt64}. */
export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX;
}

/**
 * The value of a decimal numeral, or undefined if the text is not the canonical spelling of an int64: `0|-?[1-9][0-9]*`, in
 * range. `-0`, `+1`, `007`, `1.0`, `0x1` and white space are invalid. The cost does not grow with the length of the text.
 */
export function parseInt64(text: string): bigint | undefined {
  if (text.length > MAX_LENGTH || !/^(?:0|-?[1-9][0-9]*)$/.test(text)) return undefined;
  const value = BigInt(text);
  return isInt64(value) ? value : undefined;
}

const int64Bytes = new DataView(new ArrayBuffer(8));

/**
 * The value of a bigint column, of its text as PostgreSQL and TypeORM return it.
 *
 * @example visit.id = int64Of(row.id);
 */
export function int64Of(text: string): bigint {
  // By digits and bytes: `BigInt` takes twice as long, for each id of a page. A type parser of a module may have made a bigint already.
  if (!(text.length <= 15)) return BigInt(text);
  let number = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 0x30;
    if (digit < 0 || digit > 9) return BigInt(text);
    number = number * 10 + digit;
  }
  int64Bytes.setUint32(0, number / 2 ** 32);
  int64Bytes.setUint32(4, number);
  return int64Bytes.getBigInt64(0);
}

/** A numeral of JSON: its sign, its digits before and behind the point, and its exponent (RFC 8259, section 6). */
const NUMERAL = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** '9223372036854775808' */
const MAX_DIGITS = 19;

/**
 * The value of a JSON numeral, however it is spelled (`100`, `1e2`, `100.0`); undefined if it is no integer in range. The time is
 * linear in the length of the text, whatever its exponent.
 */
export function int64OfNumeral(numeral: string): bigint | undefined {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] = NUMERAL.exec(numeral) ?? [];
  const digits = integer + fraction;
  const first = digits.search(/[1-9]|$/);
  if (first === digits.length) return digits === '' ? undefined : 0n;
  // Where the decimal point stands without the exponent.
  const point = integer.length + Number(exponent);
  const isInteger = !/[1-9]/.test(digits.slice(Math.max(first, point)));
  if (!isInteger || point - first > MAX_DIGITS) return undefined;
  const value = BigInt(sign + digits.slice(first, point).padEnd(point - first, '0'));
  return isInt64(value) ? value : undefined;
}

/**
 * Converts a number to an int64; undefined for a value that is not an integer in range. A `number` beyond 2^53 - 1 is refused,
 * because it may have been rounded already.
 */
export function toInt64(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return isInt64(value) ? value : undefined;
}

/** Compares two canonical int64 numerals by value, for `sort`. Most have the same length and need no bigint. */
export function compareInt64Texts(one: string, other: string): number {
  const isSimple = one.length === other.length && one[0] !== '-' && other[0] !== '-';
  const [left, right] = isSimple ? [one, other] : [BigInt(one), BigInt(other)];
  return left < right ? -1 : Number(left > right);
}

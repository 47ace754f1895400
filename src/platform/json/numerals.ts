/** Integers with more decimal digits are read as Infinity: no integer type of the service is that large. */
const MAX_INTEGER_DIGITS = 40;

/** Decimal digits that a double holds exactly. */
const EXACT_DIGITS = 15;

const ZERO = 0x30;

/**
 * The value of a JSON number.
 *
 * - An integer, however it is spelled (`100`, `1e2`, `100.0`, `-0`), is a `number` if that is safe (up to 2^53 - 1), else
 *   a `bigint`, else (more than 40 digits) Infinity or -Infinity.
 * - A number with a fraction is the nearest double. It is NaN if that double is an integer, so that it cannot pass as one.
 *
 * @param token a valid number (RFC 8259, section 6). The time is linear in its length, whatever the exponent.
 */
export function readNumeral(token: string): number | bigint {
  const value = Number(token);
  // The double nearest to an integer is an integer, so this token is not an integer.
  if (Number.isFinite(value) && !Number.isInteger(value)) {
    return value;
  }
  // A double is exact for 15 digits, so a short token that gives a safe integer is that integer. Only 0 may be a rounded
  // tiny number.
  if (token.length <= EXACT_DIGITS && Number.isSafeInteger(value) && value !== 0) {
    return value;
  }
  const negative = token.startsWith('-');
  const mark = token.search(/[eE]/);
  const mantissa = token.slice(negative ? 1 : 0, mark < 0 ? token.length : mark);
  const exponent = mark < 0 ? 0 : Number(token.slice(mark + 1));
  const point = mantissa.indexOf('.');
  const integer = point < 0 ? mantissa : mantissa.slice(0, point);
  const fraction = point < 0 ? '' : mantissa.slice(point + 1);
  return exactInteger(negative, integer, fraction, exponent) ?? NaN;
}

/**
 * The value of `integer.fraction * 10^exponent` if it is an integer, else undefined. The cost depends only on the number of
 * digits: the exponent may be of any size, even Infinity.
 */
function exactInteger(
  negative: boolean,
  integer: string,
  fraction: string,
  exponent: number,
): number | bigint | undefined {
  const written = integer + fraction;
  let first = 0;
  while (written.charCodeAt(first) === ZERO) {
    first++;
  }
  if (first === written.length) {
    return negative ? -0 : 0;
  }
  let end = written.length;
  while (written.charCodeAt(end - 1) === ZERO) {
    end--;
  }
  const zeros = exponent - fraction.length + (written.length - end);
  if (zeros < 0) {
    return undefined;
  }
  if (end - first + zeros > MAX_INTEGER_DIGITS) {
    return negative ? -Infinity : Infinity;
  }
  const digits = (negative ? '-' : '') + written.slice(first, end) + '0'.repeat(zeros);
  // Rounding never carries an unsafe integer into the safe range, so this test is exact.
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

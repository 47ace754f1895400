/** Integers with more decimal digits are read as Infinity: no integer type the service stores comes near. */
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
 * @param token a number of RFC 8259, section 6. The time is linear in its length, whatever the exponent.
 */
export function readNumeral(token: string): number | bigint {
  const value = Number(token);
  // The double nearest to an integer is an integer, so this token is none.
  if (Number.isFinite(value) && !Number.isInteger(value)) {
    return value;
  }
  // A double is exact for 15 digits, so a short token of a safe integer is that integer. A tiny one may have become 0.
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

/** Whether the value that {@link readNumeral} has given for a number is, written in decimal, that number to the last digit. */
export function keepsDigits(token: string, value: number | bigint): boolean {
  // The double nearest to so few digits is nearer to no other number of so few digits.
  if (token.length <= EXACT_DIGITS || typeof value === 'bigint' || !Number.isFinite(value)) return true;
  const [sent, kept] = [token, String(value)].map(significandOf) as [Significand, Significand];
  return sent.digits === kept.digits && (sent.digits === '' || sent.exponent === kept.exponent);
}

interface Significand {
  /** Without zeros at the front and at the end. */
  readonly digits: string;
  /** Of the last digit. */
  readonly exponent: number;
}

function significandOf(decimal: string): Significand {
  const [mantissa = '', exponent = '0'] = decimal.replace('-', '').split(/[eE]/);
  const [integer = '', fraction = ''] = mantissa.split('.');
  const digits = (integer + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  return { digits: significant, exponent: Number(exponent) - fraction.length + digits.length - significant.length };
}

/**
 * The integer that `integer.fraction * 10^exponent` is, or undefined if it is none. Only the digits are looked at: the
 * exponent may be anything, Infinity too, and costs nothing.
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

/** Limits of a decimal number, as in PostgreSQL's `numeric(precision, scale)`. */
export interface DecimalLimits {
  /** Largest number of digits, 1 to 1,000. */
  precision: number;
  /** Largest number of digits after the point, 0 to `precision`. */
  scale: number;
  /** The smallest value, as a decimal text. */
  minimum?: string;
  /** The largest value, as a decimal text. */
  maximum?: string;
}

/**
 * The pattern of decimals within these digits: a sign only if negative values are valid, no exponent, no superfluous
 * leading zeros, and digits after a point.
 */
export function decimalPattern({ precision, scale, minimum }: DecimalLimits): string {
  const sign = minimum !== undefined && !minimum.startsWith('-') ? '' : '-?';
  const digits = precision - scale;
  const integer = digits === 0 ? '0' : digits === 1 ? '[0-9]' : `(0|[1-9][0-9]{0,${digits - 1}})`;
  return `^${sign}${integer}${scale === 0 ? '' : `(\\.[0-9]{1,${scale}})?`}$`;
}

/** A decimal as a multiple of its last digit: with a scale of 2, `12.5` is 1250n. */
export function unscaled(decimal: string, scale: number): bigint {
  const [integer = '', fraction = ''] = decimal.split('.');
  return BigInt(integer + fraction.padEnd(scale, '0'));
}

/** The decimal with all digits of its scale, as PostgreSQL writes it: `12.5` with a scale of 2 is `12.50`; -0 is 0. */
export function canonicalDecimal(decimal: string, scale: number): string {
  const isZero = unscaled(decimal, scale) === 0n;
  const [integer = '', fraction = ''] = decimal.split('.');
  const sign = isZero ? integer.replace('-', '') : integer;
  return scale === 0 ? sign : `${sign}.${fraction.padEnd(scale, '0')}`;
}

/** The shortest decimal text of a finite number, without an exponent. */
export function decimalTextOf(value: number): string {
  const [mantissa = '', exponent] = String(value).split('e');
  if (exponent === undefined) return mantissa;
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [integer = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const point = integer.length + Number(exponent);
  const digits = integer + fraction;
  return point <= 0
    ? `${sign}0.${'0'.repeat(-point)}${digits}`
    : sign + digits.slice(0, point).padEnd(point, '0') + (digits.length > point ? `.${digits.slice(point)}` : '');
}

import { InvalidArgumentError } from 'commander';

/** A parser for an integer argument. */
export function integerArgument(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`It must be an integer between ${minimum} and ${maximum}.`);
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration argument such as 30s, 15m, 24h or 90d, at most 36500d. Returns ms. */
export function durationArgument(text: string): number {
  const [, count = '', unit = ''] = /^([1-9]\d{0,7})([smhd])$/.exec(text) ?? [];
  const duration = Number(count) * (UNIT_MS[unit] ?? NaN);
  if (duration > 0 && duration <= 36_500 * 86_400_000) return duration;
  throw new InvalidArgumentError('It must be a duration such as 30s, 15m, 24h or 90d, at most 36500d.');
}

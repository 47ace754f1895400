/** A fault that the operator can correct. Its message is printed as one line on standard error; the exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** A parser for an integer argument; throws CommandError outside the range. */
export function integerArgument(name: string, minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (!(value >= minimum && value <= maximum)) {
      throw new CommandError(`${name} must be an integer between ${minimum} and ${maximum}`);
    }
    return value;
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A parser for a duration argument such as 30s, 15m, 24h or 90d, at most 36500d. Returns ms; throws CommandError. */
export function durationArgument(name: string): (text: string) => number {
  return (text) => {
    const [, count = '', unit = ''] = /^([1-9]\d{0,7})([smhd])$/.exec(text) ?? [];
    const duration = Number(count) * (UNIT_MS[unit] ?? NaN);
    if (!(duration > 0 && duration <= 36_500 * 86_400_000)) {
      throw new CommandError(`${name} must be a duration such as 30s, 15m, 24h or 90d, at most 36500d`);
    }
    return duration;
  };
}

import { InvalidArgumentError } from 'commander';

/** Shows `text` instead of the current line of a terminal; nothing when standard output is none. */
export function showProgress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text}`);
}

/** The text of a result: `value` as JSON with `--json`, else `text`. */
export function resultText(json: boolean | undefined, value: unknown, text: string): string {
  const bigintAsText = (_key: string, member: unknown): unknown =>
    typeof member === 'bigint' ? member.toString() : member;
  return `${json ? JSON.stringify(value, bigintAsText, 2) : text}\n`;
}

/** The last time that a Date can hold, in ms, which stands for PostgreSQL's `infinity`; the first one is its negative. */
const LAST_TIME = 8.64e15;

/** A time as a table cell: UTC, to the minute; `-` for null. */
export function timeCell(time: Date | null): string {
  if (time === null) return '-';
  const ms = time.getTime();
  if (Math.abs(ms) === LAST_TIME) return ms > 0 ? 'infinity' : '-infinity';
  return Number.isNaN(ms) ? 'unreadable' : time.toISOString().replace(/T(\d\d:\d\d).*/, ' $1');
}

/** The day of a time as a table cell. */
export function dayCell(time: Date | null): string {
  return timeCell(time).split(' ')[0] as string;
}

/** As `printable`, of a text of lines whose format the commands have made. */
export function printableLines(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '?');
}

/** Replaces control characters in text of unknown origin, because a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

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

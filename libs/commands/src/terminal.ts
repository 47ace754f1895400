import { InvalidArgumentError } from 'commander';
import { printableLines, StartupError } from '#runtime';
import type { Product } from '#settings';

/** The option of commands that may make the database of the embedded engine when asked to. */
export const NEW_DATABASE = ['--new-database', 'if DATA_DIR has no database, make one'] as const;

/**
 * Writes to standard output, and waits until the system has taken it.
 *
 * @throws StartupError when it cannot be written, with the error of the system as its cause
 */
export function write(text: string): Promise<void> {
  return new Promise((done, fail) => {
    const failed = (cause: NodeJS.ErrnoException): void =>
      fail(new StartupError(`Standard output cannot be written: ${cause.code ?? cause.message}.`, { cause }));
    process.stdout.write(text, (error) => (error ? failed(error) : done()));
  });
}

/** A message with its full stop, unless it ends a sentence already. */
export function sentence(message: string): string {
  return /[.?!…]$/.test(message) ? message : `${message}.`;
}

/** A message: nothing in it controls a terminal, and API keys of this service are cut to their displayed characters. */
export function messageText(text: string, { apiKeyPrefix }: Product): string {
  return printableLines(text).replace(new RegExp(`(${apiKeyPrefix}\\w{7})\\w{42}`, 'g'), '$1…');
}

/**
 * Shows `text` instead of the current line of a terminal; nothing when standard output is none.
 *
 * @example showProgress(`${done} of ${count} orders`);
 */
export function showProgress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text}`);
}

/**
 * The text of a result: `value` as JSON with `--json`, else `text`.
 *
 * @example context.print(resultText(json, orders, table(['ID', 'STATE'], rows)));
 */
export function resultText(json: boolean | undefined, value: unknown, text: string): string {
  const bigintAsText = (_key: string, member: unknown): unknown =>
    typeof member === 'bigint' ? member.toString() : member;
  return `${json ? JSON.stringify(value, bigintAsText, 2) : text}\n`;
}

/**
 * Rows of text below their headings, in columns as wide as their longest cell.
 *
 * @example context.print(table(['ID', 'STATE'], [['1', 'placed']]));
 */
export function table(headings: string[], rows: string[][]): string {
  const lines = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return padded.map((line) => line.trimEnd()).join('\n');
}

/**
 * A time as a table cell: UTC, to the minute; `-` for null.
 *
 * @example table(['ID', 'PLACED'], orders.map(({ id, placedAt }) => [id, timeCell(placedAt)]));
 */
export function timeCell(time: Date | null): string {
  if (time === null) return '-';
  return Number.isNaN(time.getTime()) ? 'unreadable' : time.toISOString().replace(/T(\d\d:\d\d).*/, ' $1');
}

/** The day of a time as a table cell. */
export function dayCell(time: Date | null): string {
  return timeCell(time).split(' ')[0] as string;
}

/**
 * Parses an integer argument of a command in a range.
 *
 * @example program.command('seed').requiredOption('--count <n>', 'number of orders', integerArgument(1, 1000));
 */
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

import { Presets, SingleBar } from 'cli-progress';

/** A command was used wrongly. Its message is printed as one line on standard error; the exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Prints the result of a command to standard output: `value` as JSON with `--json`, else `text`. */
export function printResult(json: boolean | undefined, value: unknown, text: string): void {
  process.stdout.write(`${json ? JSON.stringify(value, bigintAsText, 2) : text}\n`);
}

/** A table as text, with aligned columns. */
export function table(headings: string[], rows: string[][]): string {
  const lines = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A time as a table cell: UTC, to the minute; `-` for null. */
export function timeCell(time: Date | null): string {
  return time?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
}

/** Replaces control characters in text of unknown origin, because a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

/** A progress bar on standard error; shows nothing when that is not a terminal. */
export function progressBar(total: number, unit: string): { update(done: number): void; stop(): void } {
  if (!process.stderr.isTTY || total === 0) {
    return { update: () => undefined, stop: () => undefined };
  }
  const format = `{bar} {percentage}% | {value}/{total} ${unit} | {eta_formatted} left`;
  const bar = new SingleBar({ format, stream: process.stderr, hideCursor: true }, Presets.shades_classic);
  bar.start(total, 0);
  return { update: (done) => bar.update(done), stop: () => bar.stop() };
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

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A parser for a duration argument such as 30m, 24h or 90d, at most 36500d. Returns ms; throws CommandError. */
export function durationArgument(name: string): (text: string) => number {
  return (text) => {
    const [, count = '', unit = ''] = /^([1-9]\d{0,7})([mhd])$/.exec(text) ?? [];
    const duration = Number(count) * (UNIT_MS[unit] ?? NaN);
    if (!(duration > 0 && duration <= 36_500 * 86_400_000)) {
      throw new CommandError(`${name} must be a duration such as 30m, 24h or 90d, at most 36500d`);
    }
    return duration;
  };
}

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

import { Presets, SingleBar } from 'cli-progress';
import type { UsageSummary } from '../platform/key-usage/key-usage.js';

/** Where a command prints. */
export interface Terminal {
  /** Prints the result. */
  print(text: string): void;
  /** Prints a message for the operator, apart from the result. */
  tell(text: string): void;
  /**
   * Shows the progress, and hides it when `done` reaches `total`. A long command awaits each call, so that other work of
   * the process can run.
   *
   * @throws CommandError when the command must stop
   */
  progress(done: number, total: number, unit: string): void | Promise<void>;
}

/** Standard output and standard error; progress is a bar on standard error, if that is a terminal. */
export class StandardTerminal implements Terminal {
  private bar: SingleBar | undefined;

  print(text: string): void {
    process.stdout.write(text);
  }

  tell(text: string): void {
    process.stderr.write(text);
  }

  progress(done: number, total: number, unit: string): void {
    if (!process.stderr.isTTY) return;
    if (this.bar === undefined) {
      const format = `{bar} {percentage}% | {value}/{total} ${unit} | {eta_formatted} left`;
      this.bar = new SingleBar(
        { format, stream: process.stderr, hideCursor: true, barsize: 20 },
        Presets.shades_classic,
      );
      this.bar.start(total, done);
    }
    this.bar.update(done);
    if (done >= total) this.stop();
  }

  /** Removes the progress bar, if there is one. */
  stop(): void {
    this.bar?.stop();
    this.bar = undefined;
  }
}

/** The text of a result: `value` as JSON with `--json`, else `text`. */
export function resultText(json: boolean | undefined, value: unknown, text: string): string {
  const bigintAsText = (_key: string, member: unknown): unknown =>
    typeof member === 'bigint' ? member.toString() : member;
  return `${json ? JSON.stringify(value, bigintAsText, 2) : text}\n`;
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

/** A table of usage by client or operation. */
export function usageTable(heading: string, usage: readonly (readonly [string, UsageSummary])[]): string {
  const rows = usage.map(([name, { calls, lastCallAt, lastUserAgent }]) => [
    printable(name),
    calls.toString(),
    timeCell(lastCallAt),
    printable(lastUserAgent ?? '-'),
  ]);
  return table([heading, 'CALLS', 'LAST CALL (UTC)', 'LAST USER AGENT'], rows);
}

/** A time as a table cell: UTC, to the minute; `-` for null. */
export function timeCell(time: Date | null): string {
  return time?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
}

/** Replaces control characters in text of unknown origin, because a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

import { Presets, SingleBar } from 'cli-progress';
import { Option } from 'commander';
import { CommandError } from './command-error.js';

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
  return `${json ? JSON.stringify(value, bigintAsText, 2) : text}\n`;
}

/** Width of tables in a terminal, in columns. */
const TERMINAL_WIDTH = 80;

/** Narrowest width to which a column is wrapped: that of a date. */
const MIN_COLUMN_WIDTH = 10;

const GAP = '  ';

/** A table as text, with aligned columns. The widest cells are wrapped until it fits the width, in columns. */
export function table(headings: string[], rows: string[][], maxWidth = TERMINAL_WIDTH): string {
  const lines = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const excess = (): number => widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - maxWidth;
  while (excess() > 0) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN_WIDTH) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return lines
    .flatMap((line) => {
      const cells = widths.map((width, column) => wrapped(line[column] ?? '', width));
      const height = Math.max(...cells.map((cell) => cell.length));
      return Array.from({ length: height }, (_, row) =>
        widths
          .map((width, column) => (cells[column]?.[row] ?? '').padEnd(width))
          .join(GAP)
          .trimEnd(),
      );
    })
    .join('\n');
}

/** Splits a text into lines of at most this width, after a space or comma where possible. */
function wrapped(text: string, width: number): string[] {
  if (text.length <= width) return [text];
  const head = text.slice(0, width);
  const space = text[width] === ' ' ? width : Math.max(head.lastIndexOf(' '), head.lastIndexOf(',')) + 1;
  const end = space > 0 ? space : width;
  return [text.slice(0, end).trimEnd(), ...wrapped(text.slice(end).trimStart(), width)];
}

/** A time as a table cell: UTC, to the minute; `-` for null. */
export function timeCell(time: Date | null): string {
  return time?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
}

/** Replaces control characters in text of unknown origin, because a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

const required = new WeakSet<Option>();

/** A required option; its help says so. */
export function requiredOption(flags: string, description: string, parse?: (text: string) => unknown): Option {
  const option = new Option(flags, `${description} (required)`);
  if (parse) option.argParser(parse);
  required.add(option);
  return option;
}

/**
 * Whether `requiredOption` made this option. Commander's own check of required options is not used: it would report the
 * missing option before an unknown one, which is usually the same option misspelt.
 */
export function isRequired(option: Option): boolean {
  return required.has(option);
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

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

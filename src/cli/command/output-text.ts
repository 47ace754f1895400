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
  const widths = fittingWidths(lines, maxWidth);
  return lines.flatMap((line) => wrappedLine(line, widths)).join('\n');
}

/** The widths of the columns; the first line has a cell in each. */
function fittingWidths(lines: readonly string[][], maxWidth: number): number[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const excess = (): number => widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - maxWidth;
  while (excess() > 0) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN_WIDTH) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

/** A line of the table as lines of text: as many as its highest cell has. */
function wrappedLine(line: readonly string[], widths: readonly number[]): string[] {
  const cells = widths.map((width, column) => wrapped(line[column] ?? '', width));
  const height = Math.max(...cells.map((cell) => cell.length));
  return Array.from({ length: height }, (_, row) =>
    widths
      .map((width, column) => (cells[column]?.[row] ?? '').padEnd(width))
      .join(GAP)
      .trimEnd(),
  );
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

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

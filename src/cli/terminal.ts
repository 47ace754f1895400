import type { UsageSummary } from '#key-usage';

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

/** A table of usage by client. */
export function usageTable(usage: readonly (readonly [string, UsageSummary])[]): string {
  const rows = usage.map(([name, { calls, lastCallAt, lastUserAgent }]) => [
    printable(name),
    calls.toString(),
    timeCell(lastCallAt),
    printable(lastUserAgent ?? '-'),
  ]);
  return table(['CLIENT', 'CALLS', 'LAST CALL (UTC)', 'LAST USER AGENT'], rows);
}

/** A time as a table cell: UTC, to the minute; `-` for null. */
export function timeCell(time: Date | null): string {
  return time?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
}

/** As `printable`, of a text of lines whose format the commands have made. */
export function printableLines(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '?');
}

/** Replaces control characters in text of unknown origin, because a terminal would obey them. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

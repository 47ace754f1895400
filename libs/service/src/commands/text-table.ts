/**
 * Rows of text below their headings, in columns as wide as their longest cell.
 *
 * @example context.print(table(['ID', 'STATE'], [['1', 'placed']]));
 */
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

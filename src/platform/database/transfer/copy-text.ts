/** The characters that must be escaped in the text format of COPY: separators of columns and rows, and the backslash. */
const SPECIAL = /[\\\n\r\t]/;
const ALL_SPECIAL = /[\\\n\r\t]/g;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** A row in the text format of COPY, with its line end. The columns are the texts of PostgreSQL's output functions. */
export function copyLine(columns: readonly (string | null)[]): string {
  let line = '';
  for (let index = 0; index < columns.length; index++) {
    const column = columns[index];
    if (index > 0) line += '\t';
    if (column === null || column === undefined) line += '\\N';
    else
      line += SPECIAL.test(column) ? column.replace(ALL_SPECIAL, (character) => ESCAPES[character] as string) : column;
  }
  return `${line}\n`;
}

/** The description of a statement in a span. */
export interface StatementDescription {
  /** Operation and table, such as `SELECT book`: the name of the span. */
  readonly summary: string;
  readonly operation: string;
  /** The first table that the statement names; undefined if none is found. */
  readonly table: string | undefined;
  /** The text without literals. Our own statements pass values as parameters, but a module may write some into its text. */
  readonly text: string;
}

/** Largest number of cached descriptions. The service has fewer statements, but a module may make a text per request. */
const MAX_KNOWN = 1_000;

/**
 * Longest text in characters that is described whole and cached. A longer one, such as an import of many rows, is cut first
 * and not cached: its span holds less than that anyway.
 */
const MAX_LENGTH = 10_000;

const known = new Map<string, StatementDescription>();

/** The description of a statement's text. */
export function describeStatement(text: string): StatementDescription {
  if (text.length > MAX_LENGTH) return describe(text.slice(0, MAX_LENGTH));
  const earlier = known.get(text);
  if (earlier !== undefined) return earlier;
  const description = describe(text);
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(text, description);
  return description;
}

const QUOTED_NAME = '"(?:[^"]|"")*"';
const COMMENT = '--[^\\n]*|/\\*.*?(?:\\*/|$)';
/** Text constants in all of PostgreSQL's forms, complete or cut, and numbers that are not part of a name or parameter. */
const LITERAL = [
  "\\b[eE]'(?:[^'\\\\]|''|\\\\.)*(?:'|\\\\?$)",
  "(?:\\b[bBxXnN]|\\b[uU]&)?'(?:[^']|'')*(?:'|$)",
  '\\$([A-Za-z_]\\w*)?\\$.*?(?:\\$\\3\\$|$)',
  '(?<![\\w$])0[xXoObB][\\da-fA-F_]+',
  '(?<![\\w$.])(?:\\d[\\d_]*(?:\\.[\\d_]*)?|\\.\\d[\\d_]*)(?:[eE][+-]?[\\d_]+)?',
].join('|');
const TOKEN = new RegExp(`(${QUOTED_NAME})|(${COMMENT})|${LITERAL}`, 'gs');

const NAME = '(?:"(?:[^"]|"")+"|[A-Za-z_][\\w$]*)';
const TABLE_NAME = `(?:ONLY\\s+)?((?:${NAME}\\.)?${NAME})(?!["\\w$.])`;
/** Matches the first table. After FROM and JOIN, a name with parentheses is a function. */
const TABLE = new RegExp(
  `\\b(?:(?:INTO|UPDATE|TABLE|COPY)\\s+${TABLE_NAME}|(?:FROM|JOIN)\\s+${TABLE_NAME}(?!\\s*\\())`,
  'i',
);
const CHANGE = /\b(INSERT\s+INTO|(?<!\bFOR\s+(?:NO\s+KEY\s+)?)UPDATE|DELETE\s+FROM|MERGE\s+INTO)\b/i;

function describe(statement: string): StatementDescription {
  const text = statement
    .replace(TOKEN, (_, name?: string, comment?: string) => name ?? (comment === undefined ? '?' : ' '))
    .trim();
  const first = /^\W*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? 'STATEMENT';
  const change = CHANGE.exec(text);
  // For WITH, the operation and table are those of the first change in it.
  const operation = first === 'WITH' ? (change?.[1]?.split(/\s/)[0]?.toUpperCase() ?? 'SELECT') : first;
  const from = first === 'WITH' && change ? text.slice(change.index) : text;
  const [, changed, read] = TABLE.exec(from) ?? [];
  const table = (changed ?? read)?.replaceAll('"', '');
  return { summary: table === undefined ? operation : `${operation} ${table}`, operation, table, text };
}

/** What a span says of a statement. */
export interface StatementDescription {
  /** Operation and table, such as `SELECT book`: the name of the span. */
  readonly summary: string;
  readonly operation: string;
  /** The first table that the statement names; undefined if none is found. */
  readonly table: string | undefined;
  /** The text without literals. Values of our own statements are parameters; a module may write some into its text. */
  readonly text: string;
}

/** Most descriptions in memory. The service has fewer statements; a module may make a text for each request. */
const MAX_KNOWN = 1_000;

const known = new Map<string, StatementDescription>();

/** The description of a statement's text. */
export function describeStatement(text: string): StatementDescription {
  const earlier = known.get(text);
  if (earlier !== undefined) return earlier;
  const description = describe(text);
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(text, description);
  return description;
}

const QUOTED_NAME = '"(?:[^"]|"")*"';
const COMMENT = '--[^\\n]*|/\\*.*?\\*/';
/** Text constants in all of PostgreSQL's forms, and numbers that are no part of a name or parameter. */
const LITERAL = [
  "\\b[eE]'(?:[^'\\\\]|''|\\\\.)*'",
  "(?:\\b[bBxXnN]|\\b[uU]&)?'(?:[^']|'')*'",
  '\\$([A-Za-z_]\\w*)?\\$.*?\\$\\3\\$',
  '(?<![\\w$.])\\d[\\d.]*(?:[eE][+-]?\\d+)?\\b',
].join('|');
const TOKEN = new RegExp(`(${QUOTED_NAME})|(${COMMENT})|${LITERAL}`, 'gs');

const NAME = '(?:"(?:[^"]|"")+"|[A-Za-z_][\\w$]*)';
const TABLE_NAME = `(?:ONLY\\s+)?((?:${NAME}\\.)?${NAME})(?!["\\w$.])`;
/** The first table; what has parentheses behind FROM or JOIN is a function. */
const TABLE = new RegExp(
  `\\b(?:(?:INTO|UPDATE|TABLE|COPY)\\s+${TABLE_NAME}|(?:FROM|JOIN)\\s+${TABLE_NAME}(?!\\s*\\())`,
  'i',
);
const CHANGE = /\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO)\b/i;

function describe(statement: string): StatementDescription {
  const text = statement
    .replace(TOKEN, (_, name?: string, comment?: string) => name ?? (comment === undefined ? '?' : ' '))
    .trim();
  const first = /^\W*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? 'STATEMENT';
  const change = CHANGE.exec(text);
  // A common table expression changes what its statement changes.
  const operation = first === 'WITH' ? (change?.[1]?.split(/\s/)[0]?.toUpperCase() ?? 'SELECT') : first;
  const from = first === 'WITH' && change ? text.slice(change.index) : text;
  const [, changed, read] = TABLE.exec(from) ?? [];
  const table = (changed ?? read)?.replaceAll('"', '');
  return { summary: table === undefined ? operation : `${operation} ${table}`, operation, table, text };
}

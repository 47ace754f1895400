import { lstatSync, readFileSync } from 'node:fs';
import { StartupError } from '#runtime';
import { GONE_NAMES } from './gone-settings.js';
import { isSlip, nearestName } from './nearest-name.js';

const FILE = '.env';

/** A line without an assignment: white space, or a comment. */
const EMPTY_LINE = /[ \t]*(?:#.*)?(?:\n|$)/y;

/** `NAME=value`, also after `export`, as Node's `--env-file` reads it. A value in quotes may span lines. */
const ASSIGNMENT =
  /[ \t]*(?:export[ \t]+)?([a-z_][\w.-]*)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)'|`([^`]*)`|(?!["'`])((?:[^\n#]*[^\s#])?))[ \t]*(#.*)?(?:\n|$)/iy;

/** Names that others read: Node.js, OpenSSL, pg, OpenTelemetry, terminals, and `docker compose`, which shares the file. */
const OF_OTHERS =
  /^((OTEL|NODE|NPM|UV|SSL_CERT|POSTGRES|COMPOSE|DOCKER|LC)_.*|REDIS_PASSWORD|PG[A-Z]+|DEBUG|FORCE_COLOR|NO_COLOR|LANG|TZ|(HTTPS?|NO|ALL)_PROXY)$/i;

/** Shorter names resemble those of other programs: HOME, HOST. */
const SHORTEST_SLIP = 8;

/** Most names that the warning lists. */
const MOST_NAMES = 20;

/**
 * Loads `.env` of the working directory, if it exists. Variables that are set already keep their values. A second call adds
 * nothing.
 *
 * @param known the names of all settings; none: returns no line
 * @returns a line for the operator: names that nobody knows and names that are set twice, never values; undefined if there are none
 * @throws StartupError when the file cannot be read, is not UTF-8, or has a line that is no assignment
 */
export function loadEnvironmentFile(known?: readonly string[], environment = process.env): string | undefined {
  const assignments = exists() ? parse(textOf()) : [];
  const values = new Map(assignments);
  const own = { ...environment };
  for (const [name, value] of values) environment[name] ??= value;
  if (known === undefined) return undefined;

  // Most of the environment belongs to other programs, so only what is nearly one of ours is told.
  const missing = known.filter((name) => name.length >= SHORTEST_SLIP && own[name] === undefined);
  const others = Object.keys(own).filter((name) => !known.includes(name) && own[name] !== values.get(name));
  const slips = others.flatMap((name) => {
    const meant = missing.find((setting) => isSlip(name, setting));
    return meant === undefined ? [] : [withNearest(name, meant)];
  });
  const names = assignments.map(([name]) => name);
  const unknown = [...values.keys()].filter(
    (name) => ![...known, ...GONE_NAMES].includes(name) && !OF_OTHERS.test(name),
  );
  const repeated = [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
  const clauses = [
    list(
      `${FILE} sets what is no setting of the service:`,
      unknown.map((name) => withNearest(name, nearestName(name, known))),
    ),
    list('the environment sets what is no setting of the service:', slips),
    list(`${FILE} sets twice, and the last one counts:`, repeated),
  ].filter((clause) => clause !== undefined);
  return clauses.length === 0 ? undefined : `${clauses.join('; ')}.`;
}

function withNearest(name: string, meant: string | undefined): string {
  const escaped = name.replace(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return meant === undefined ? escaped : `${escaped} (did you mean ${meant}?)`;
}

function list(what: string, names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '';
  return `${what} ${names.slice(0, MOST_NAMES).join(', ')}${more}`;
}

/** A link to nothing exists, too: its target may be missing by mistake. In a directory that may not be searched, nothing does. */
function exists(): boolean {
  try {
    return lstatSync(FILE, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function textOf(): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(FILE);
  } catch (error) {
    throw unreadable(`${(error as Error).message}. Make it a readable file, or remove it.`);
  }
  // Also without a byte order mark: each ASCII character of UTF-16 has a byte that is 0.
  if (bytes.includes(0)) {
    throw unreadable(
      'it is UTF-16, as > of Windows PowerShell writes it, or damaged: it has bytes that are 0. Save it as UTF-8.',
    );
  }
  try {
    // Takes a byte order mark away.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r\n?/g, '\n');
  } catch {
    throw unreadable('it is not UTF-8. Save it as UTF-8.');
  }
}

/** The assignments in the order of the file. */
function parse(text: string): [name: string, value: string][] {
  const assignments: [string, string][] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  while (at < text.length) {
    if (match(EMPTY_LINE)) continue;
    const start = at;
    const found = match(ASSIGNMENT);
    // The line may hold a secret.
    const line = `line ${text.slice(0, start).split('\n').length}`;
    if (found === null) {
      throw unreadable(`${line} is no assignment. Write NAME=value, with # before a comment and quotes in pairs.`);
    }
    const [all, name = '', double, single, back, plain = '', comment] = found;
    if (comment !== undefined && plain !== '' && all.includes(plain + comment)) {
      throw unreadable(`${line} has # inside a value. Put the value in quotes, or a space before a comment.`);
    }
    assignments.push([name, double?.replaceAll('\\n', '\n') ?? single ?? back ?? plain]);
  }
  return assignments;
}

function unreadable(reason: string): StartupError {
  return new StartupError(`${FILE} cannot be read: ${reason}`);
}

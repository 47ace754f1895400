import { readFileSync } from 'node:fs';
import { parse } from 'dotenv';
import { StartupError } from '#runtime';
import { isSlip, nearestName } from './nearest-name.js';

const FILE = '.env';

/** `NAME=value`, also after `export`. A value in quotes may span lines. */
const ASSIGNMENT =
  /^[ \t]*(?:export[ \t]+)?[a-z_][\w.-]*[ \t]*=[ \t]*(?:(["'`])(?:(?!\1)[^])*\1[ \t]*(?:#.*)?|(?!["'`]).*)$/gim;

/** Names that others read: Node.js, OpenSSL, pg, OpenTelemetry, terminals, and `docker compose`, which shares the file. */
const OF_OTHERS =
  /^((OTEL|NODE|NPM|UV|SSL_CERT|POSTGRES|COMPOSE|DOCKER|LC)_.*|REDIS_PASSWORD|PG[A-Z]+|DEBUG|FORCE_COLOR|NO_COLOR|LANG|TZ|(HTTPS?|NO|ALL)_PROXY)$/i;

/** Settings of earlier releases, which asked for what the service does not do any more. */
const GONE = ['DATABASE_REPLICA_URLS', 'FAST_PATHS'];

/** Shorter names resemble those of other programs: HOME, HOST. */
const SHORTEST_SLIP = 8;

/**
 * Loads `.env` of the working directory, if it exists. Variables that are set already keep their values. A second call adds
 * nothing.
 *
 * @param known the names of all settings; none: returns no line
 * @returns a line for the operator: names that nobody knows, never values; undefined if there are none
 * @throws StartupError when the file cannot be read, or has a line that is no assignment
 */
export function loadEnvironmentFile(known?: readonly string[], environment = process.env): string | undefined {
  const values = parse(textOf());
  const own = { ...environment };
  for (const [name, value] of Object.entries(values)) environment[name] ??= value;
  if (known === undefined) return undefined;

  // Most of the environment belongs to other programs, so only what is nearly one of ours, or was one, is told.
  const missing = known.filter((name) => name.length >= SHORTEST_SLIP && own[name] === undefined);
  const others = Object.keys(own).filter((name) => !known.includes(name) && own[name] !== values[name]);
  const slips = others.flatMap((name) => {
    const meant = missing.find((setting) => isSlip(name, setting));
    return meant === undefined ? GONE.filter((gone) => gone === name) : [withNearest(name, meant)];
  });
  const unknown = Object.keys(values)
    .filter((name) => !known.includes(name) && !OF_OTHERS.test(name))
    .map((name) => withNearest(name, nearestName(name, known)));
  const clause = (place: string, names: readonly string[]): string =>
    names.length === 0 ? '' : `${place} sets what is no setting of the service: ${names.join(', ')}`;
  const clauses = [clause(FILE, unknown), clause('the environment', slips)].filter((text) => text !== '');
  return clauses.length === 0 ? undefined : `${clauses.join('; ')}.`;
}

function withNearest(name: string, meant: string | undefined): string {
  const escaped = name.replace(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return meant === undefined ? escaped : `${escaped} (did you mean ${meant}?)`;
}

/** The text of the file, empty without one. Each of its lines is an assignment, a comment or white space. */
function textOf(): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(FILE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw unreadable(`${(error as Error).message}. Make it a readable file, or remove it.`);
  }
  // TextDecoder removes a byte order mark, which would belong to the first name.
  const text = new TextDecoder().decode(bytes).replace(/\r\n?/g, '\n');
  const rest = text.replace(ASSIGNMENT, (assignment) => assignment.replace(/[^\n]/g, ''));
  const wrong = rest.split('\n').findIndex((line) => /^[ \t]*[^ \t#]/.test(line));
  // The parser would skip the line, and the service would run on defaults. The line may hold a secret.
  if (wrong !== -1) {
    throw unreadable(
      `line ${wrong + 1} is no assignment. Write NAME=value in UTF-8, with # before a comment and quotes in pairs.`,
    );
  }
  return text;
}

function unreadable(reason: string): StartupError {
  return new StartupError(`${FILE} cannot be read: ${reason}`);
}

import { type Logger, pino } from 'pino';
import { logOtherInternals } from '../internals/other-internals.js';

/** The members of a log line; those that are undefined are left out. */
export type LineMembers = Readonly<Record<string, string | number | boolean | undefined>>;

/** Writes one line at level info with the given members. */
export type WriteLine = (members: LineMembers) => void;

/**
 * Writes lines with one fixed message at level info, byte for byte as `logger.info(members, message)` does. pino checks each
 * member for errors, serializers, redaction and nested objects. The members here are scalars, which need no checks. The
 * symbols of pino are documented for such purposes.
 *
 * @param logger a logger without serializers, redaction, formatters and hooks
 */
export function infoLines(logger: Logger, message: string): WriteLine {
  const { lsCacheSym, chindingsSym, timeSym, streamSym } = pino.symbols;
  const parts = logger as unknown as Record<symbol, unknown>;
  const level = logger.levels.values['info'] as number;
  const start = (parts[lsCacheSym] as Record<number, string>)[level] as string;
  const bindings = parts[chindingsSym] as string;
  const time = parts[timeSym] as () => string;
  const stream = parts[streamSym] as { write(line: string): void };
  const end = `,"msg":${JSON.stringify(message)}}\n`;
  return (members) => {
    if (logger.levelVal > level) return;
    let text = start + time() + bindings;
    for (const name in members) {
      const value = members[name];
      if (value !== undefined)
        text += `,"${name}":${typeof value === 'string' ? JSON.stringify(value) : String(value)}`;
    }
    stream.write(text + end);
  };
}

/**
 * Whether `infoLines` works with this version of pino, by a trial line. If not, logs one line.
 *
 * @param lines for tests
 */
export function canWriteLines(lines: typeof infoLines = infoLines): boolean {
  const difference = differenceOf(lines);
  if (difference !== undefined) logOtherInternals('log-lines', difference);
  return difference === undefined;
}

/** Compares a line with pino's. Describes the difference, if any. */
function differenceOf(lines: typeof infoLines): string | undefined {
  try {
    const written: string[] = [];
    const logger = pino(
      { level: 'info', base: { pid: 1 }, timestamp: () => ',"time":"now"' },
      { write: (line: string) => void written.push(line) },
    );
    const members = { text: 'a "b"', number: 1.5, flag: true, missing: undefined };
    logger.info(members, 'trial');
    lines(logger, 'trial')(members);
    return written.length === 2 && written[0] === written[1] ? undefined : 'pino writes lines in another way';
  } catch (error) {
    return `pino fails on a trial line (${String(error)})`;
  }
}

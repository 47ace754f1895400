import type { LoggerService } from '@nestjs/common';
import { type Logger, pino, stdSerializers } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Config } from '../../config.js';
import { writeString } from '../http/json-writer.js';

/** Contexts in which Nest tells how it starts: of interest only to who debugs it. */
const FRAMEWORK_CONTEXTS = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/**
 * Largest write, in bytes: whole lines, unless a single one is longer. A pipe takes that many at once or not at all
 * (PIPE_BUF of Linux), so lines of processes that share one never mix.
 */
const LOG_WRITE_BYTES = 4096;

/** Lines wait for others to be written with for so many ms at the most: what a crash may lose. */
const LOG_FLUSH_INTERVAL_MS = 500;

/** Most bytes that wait for whoever reads the log; lines beyond them are dropped, so that a stuck reader fills no memory. */
const MAX_WAITING_LOG_BYTES = 16_777_216;

/** Injection token of the process's log, a pino Logger. */
export const LOGGER = Symbol('LOGGER');

/** The log of the process: one JSON object a line on standard output; readable lines on a terminal. */
export function createLogger(config: Pick<Config, 'logLevel'>): Logger {
  const options = { level: config.logLevel, base: { pid: process.pid }, timestamp };
  return process.stdout.isTTY
    ? pino(
        options,
        PinoPretty({ colorize: true, sync: true, singleLine: true, ignore: 'pid', translateTime: 'SYS:HH:MM:ss.l' }),
      )
    : pino(options, new LogBlocks());
}

/**
 * Writes the lines of the log to standard output in blocks. pino's own destination can gather lines too, but looks through
 * all that it has gathered at each of them.
 */
class LogBlocks {
  private readonly output = pino.destination({
    dest: 1,
    sync: false,
    maxLength: MAX_WAITING_LOG_BYTES,
    maxWrite: LOG_WRITE_BYTES,
  });
  private lines = '';
  private bytes = 0;

  constructor() {
    setInterval(() => this.writeBlock(), LOG_FLUSH_INTERVAL_MS).unref();
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.bytes + bytes > LOG_WRITE_BYTES) this.writeBlock();
    this.lines += line;
    this.bytes += bytes;
  }

  /** Writes what waits, and returns when it is written. */
  flushSync(): void {
    this.writeBlock();
    this.output.flushSync();
  }

  private writeBlock(): void {
    if (this.bytes === 0) return;
    this.output.write(this.lines);
    this.lines = '';
    this.bytes = 0;
  }
}

/**
 * Writes lines of one message at level info, as `logger.info(members, message)` does, from members that are JSON text
 * already. pino looks through the members of each line for what it may have to do with them; a line for every answer has
 * always the same.
 *
 * @returns a function that takes the members, each with a comma before it
 */
export function infoLines(logger: Logger, message: string): (members: string) => void {
  const { lsCacheSym, chindingsSym, timeSym, streamSym } = pino.symbols;
  const parts = logger as unknown as Record<symbol, unknown>;
  const level = logger.levels.values['info'] as number;
  const begin = (parts[lsCacheSym] as Record<number, string>)[level] as string;
  const base = parts[chindingsSym] as string;
  const time = parts[timeSym] as () => string;
  const stream = parts[streamSym] as { write(line: string): void };
  const end = `,"msg":${writeString(message)}}\n`;
  return (members) => {
    if (logger.levelVal <= level) stream.write(begin + time() + base + members + end);
  };
}

let lastTime = 0;
let lastText = '';

/** The time as a member of a log line, in ISO 8601. Lines of the same millisecond share its text, which is dear to make. */
function timestamp(): string {
  const now = Date.now();
  if (now !== lastTime) {
    lastTime = now;
    lastText = `,"time":"${new Date(now).toISOString()}"`;
  }
  return lastText;
}

/**
 * An error as it is logged, with its causes. Other members stay behind: of PostgreSQL's and TypeORM's errors they hold the
 * values of the row and of the statement, which are a client's.
 */
function loggedError(error: Error): Record<string, unknown> {
  const { type, message, stack } = stdSerializers.err(error);
  const { code, constraint } = error as Error & { code?: unknown; constraint?: unknown };
  return { type, message, stack, code, constraint };
}

/** What Nest and every module writes through Nest's `Logger` goes into the log of the process. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, context?: string): void {
    const level = context !== undefined && FRAMEWORK_CONTEXTS.has(context) ? 'debug' : 'info';
    this.logger[level]({ context }, String(message));
  }

  error(message: unknown, ...details: unknown[]): void {
    const context = details.at(-1);
    if (message instanceof Error) {
      this.logger.error({ context, err: loggedError(message) }, message.message);
    } else {
      this.logger.error({ context, stack: details.length > 1 ? details[0] : undefined }, String(message));
    }
  }

  warn(message: unknown, context?: string): void {
    this.logger.warn({ context }, String(message));
  }

  debug(message: unknown, context?: string): void {
    this.logger.debug({ context }, String(message));
  }

  verbose(message: unknown, context?: string): void {
    this.logger.trace({ context }, String(message));
  }

  fatal(message: unknown, context?: string): void {
    this.logger.fatal({ context }, String(message));
  }
}

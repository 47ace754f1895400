import type { LoggerService } from '@nestjs/common';
import { type Logger, pino, stdSerializers } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Config } from '../../config.js';

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

/** The log is written when so many bytes are waiting, and at the latest after so many ms: what a crash may lose. */
const LOG_BUFFER_BYTES = 3500;
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
    : pino(
        options,
        pino.destination({
          dest: 1,
          sync: false,
          minLength: LOG_BUFFER_BYTES,
          maxLength: MAX_WAITING_LOG_BYTES,
          maxWrite: LOG_WRITE_BYTES,
          periodicFlush: LOG_FLUSH_INTERVAL_MS,
        }),
      );
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

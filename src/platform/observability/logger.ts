import type { LoggerService } from '@nestjs/common';
import { type Logger, pino, stdSerializers } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Config } from '../../config.js';
import { LogDestination } from './log-destination.js';

/** Contexts of Nest's own start-up lines, which are logged at level debug. */
const FRAMEWORK_CONTEXTS = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** Injection token of the process's log, a pino Logger. */
export const LOGGER = Symbol('LOGGER');

/** The log of the process on standard output: one JSON object per line, or readable lines on a terminal. */
export function createLogger(config: Pick<Config, 'logLevel'>): Logger {
  const options = { level: config.logLevel, base: { pid: process.pid }, timestamp };
  return process.stdout.isTTY
    ? pino(
        options,
        PinoPretty({ colorize: true, sync: true, singleLine: true, ignore: 'pid', translateTime: 'SYS:HH:MM:ss.l' }),
      )
    : pino(options, (standardOutput ??= new LogDestination()));
}

/** Shared by all loggers of the process, so that lines keep their order. */
let standardOutput: LogDestination | undefined;

let lastTime = 0;
let lastText = '';

/** The time as a member of a log line, in ISO 8601. Cached per millisecond: formatting dates is expensive. */
function timestamp(): string {
  const now = Date.now();
  if (now !== lastTime) {
    lastTime = now;
    lastText = `,"time":"${new Date(now).toISOString()}"`;
  }
  return lastText;
}

/**
 * The logged members of an error, with its causes. All others are left out: those of PostgreSQL's and TypeORM's errors
 * contain values of the row and of the statement, which are the client's data.
 */
function loggedError(error: Error): Record<string, unknown> {
  const { type, message, stack } = stdSerializers.err(error);
  const { code, constraint } = error as Error & { code?: unknown; constraint?: unknown };
  return { type, message, stack, code, constraint };
}

/** Writes the lines of Nest's `Logger`, which all modules use, to the log of the process. */
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

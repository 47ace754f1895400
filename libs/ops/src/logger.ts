import type { LoggerService } from '@nestjs/common';
import { createRequire } from 'node:module';
import { type DestinationStream, type Level, type Logger, pino } from 'pino';
import type { prettyFactory } from 'pino-pretty';
import { RequestContext, servedRequest } from '#edge';
import { printableLines } from '#runtime';
import { choice, type SettingsOf } from '#settings';
import { LogDestination } from './log-destination.js';
import { loggable, type LoggableError } from './loggable.js';

/** Contexts of Nest's own start-up lines, which are logged at level debug. */
const FRAMEWORK = /^(NestFactory|InstanceLoader|RoutesResolver|RouterExplorer|NestApplication)$/;

/** Injection token of the process's log, a pino Logger. */
export const LOGGER = Symbol('LOGGER');

export const LOG_SETTINGS = {
  logLevel: choice(
    'LOG_LEVEL',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'info',
    'Lowest level to log.',
  ),
};

/**
 * The log of the process on standard output: one JSON object per line, or readable lines on a terminal. No character of a line
 * controls a terminal, whoever has chosen it.
 */
export function createLogger(config: SettingsOf<typeof LOG_SETTINGS>): Logger {
  // Text in JSON keeps its value.
  const hooks = { streamWrite: printableLines };
  const options = { level: config.logLevel, base: { pid: process.pid }, timestamp, hooks };
  if (process.stdout.isTTY) return pino(options, (terminal ??= terminalLog()));
  standardOutput ??= new LogDestination();
  const logger = pino(options, standardOutput);
  standardOutput.onGap = (lines) => logger.warn({ lines }, `${lines} lines of the log were dropped before this one.`);
  return logger;
}

/** Whether the lines of a log are shown on a terminal. */
export function isOnTerminal(logger: Logger): boolean {
  return streamOf(logger) === terminal;
}

/** A writer of lines at level info, a quarter of the cost of `logger.info`: the members are JSON, `,"status":200,"msg":"request"`. */
export function infoLines(logger: Logger): (members: string) => void {
  const stream = streamOf(logger);
  const level = logger.levels.values['info'] as number;
  const pid = `,"pid":${process.pid}`;
  return (members) => {
    if (logger.levelVal <= level) stream.write(`{"level":${level}${timestamp()}${pid}${members}}\n`);
  };
}

function streamOf(logger: Logger): DestinationStream {
  return Reflect.get(logger, pino.symbols.streamSym) as DestinationStream;
}

let terminal: DestinationStream | undefined;

/** The log on a terminal: readable lines. The colours obey NO_COLOR, FORCE_COLOR and `TERM=dumb`, as those of Node do. */
function terminalLog(): DestinationStream {
  // A closed terminal must not end the service.
  process.stdout.on('error', () => undefined);
  // Only here: production, without a terminal, would load its 32 files in vain.
  const pretty = createRequire(import.meta.url)('pino-pretty') as { prettyFactory: typeof prettyFactory };
  const format = pretty.prettyFactory({
    colorize: process.stdout.hasColors(),
    // The message of a request contains its important members.
    ignore: 'pid,context,requestId,traceId,operation,client,method,path,status,code,cause,durationMs,aborted',
    messageFormat: ({ msg, method, path, status, aborted, code, durationMs }) =>
      msg === 'request'
        ? [method, path, aborted ? 'aborted' : status, code, typeof durationMs === 'number' && `${durationMs} ms`]
            .filter(Boolean)
            .join(' ')
        : String(msg),
    translateTime: 'SYS:HH:MM:ss',
  });
  return { write: (line) => void process.stdout.write(format(withoutControls(line))) };
}

/** Escapes the escapes of a line of JSON, except those of line feeds, so that its values show them instead of what they mean. */
function withoutControls(line: string): string {
  return line.replace(/\\([^])/g, (escape, kind: string) => ('ubfrt'.includes(kind) ? `\\${escape}` : escape));
}

/** Shared by all loggers of the process, so that lines keep their order. */
let standardOutput: LogDestination | undefined;

/** Number of lines that this process has dropped, because they were not read in time or could not be written. */
export function droppedLogLines(): number {
  return standardOutput?.droppedLines ?? 0;
}

let lastSecond = NaN;
let lastText = '';

/** The time as a member of a log line, in ISO 8601. Cached up to the second: formatting dates is expensive. */
export function timestamp(): string {
  const now = Date.now();
  const second = Math.floor(now / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastText = `,"time":"${new Date(now).toISOString().slice(0, -'000Z'.length)}`;
  }
  return `${lastText}${String(now - second * 1000).padStart(3, '0')}Z"`;
}

/**
 * Writes the lines of Nest's `Logger`, which all modules use, to the log of the process. After the message a caller may pass,
 * in any order:
 *
 * - `request.context`: it becomes `requestId`, `traceId` and `operation`. The default is the current request, if
 *   REQUEST_IN_LOG is true.
 * - An error, or its stack as a text: it becomes `error` or `stack`.
 * - Anything else: it becomes part of `details`.
 *
 * A message that is not a text is written as JSON. All values are bounded and contain no data of clients (`loggable.ts`).
 */
export class NestLogger implements LoggerService {
  readonly error = this.writer('error');
  readonly warn = this.writer('warn');
  readonly debug = this.writer('debug');
  readonly verbose = this.writer('trace');
  readonly fatal = this.writer('fatal');

  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...details: unknown[]): void {
    this.write(FRAMEWORK.test(String(details.at(-1))) ? 'debug' : 'info', message, details);
  }

  private writer(level: Level): LoggerService['log'] {
    return (message: unknown, ...details: unknown[]) => this.write(level, message, details);
  }

  private write(level: Level, message: unknown, details: readonly unknown[]): void {
    if (!this.logger.isLevelEnabled(level)) return;
    const last = details.at(-1);
    // Nest's Logger passes its own context last, after undefined for a missing stack.
    const context = typeof last === 'string' && !isStack(last) ? last : undefined;
    const given = (context === undefined ? details : details.slice(0, -1)).filter((detail) => detail !== undefined);
    const passed = given.find((detail) => detail instanceof RequestContext);
    const request = passed ?? servedRequest.getStore();
    const error = [message, ...given].find((detail) => detail instanceof Error);
    const stack = given.find((detail) => typeof detail === 'string' && isStack(detail));
    const others = given.filter((detail) => detail !== passed && detail !== error && detail !== stack);
    const shown = error && (loggable(error) as LoggableError);
    this.logger[level](
      {
        context,
        requestId: request?.requestId,
        traceId: request?.traceId,
        operation: request?.operation,
        // Not `err`: pino would serialize it as an error, and append its causes to the message.
        error: shown,
        stack: stack === undefined ? undefined : loggable(stack),
        details: others.length > 0 ? loggable(others) : undefined,
      },
      message === error && shown ? shown.message || shown.type : textOf(message),
    );
  }
}

function textOf(message: unknown): string {
  const value = loggable(message);
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
}

function isStack(text: string): boolean {
  return /\n[ \t]+at .+:\d+:\d+/.test(text);
}

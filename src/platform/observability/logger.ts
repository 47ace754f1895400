import type { LoggerService } from '@nestjs/common';
import { writeSync } from 'node:fs';
import { type Logger, pino, stdSerializers } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Config } from '../../config.js';
import { writeString } from '../json/json-writer.js';

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

/** Time in ms until a write is tried again when whoever reads the log has left no room for it. */
const LOG_RETRY_DELAY_MS = 10;

/** Most bytes that wait for whoever reads the log; lines beyond them are dropped, so that a stuck reader fills no memory. */
const MAX_WAITING_LOG_BYTES = 16_777_216;

/** Time in ms that the end of the process waits for a slow or stuck reader; the lines that are left then are lost. */
const MAX_LOG_END_WAIT_MS = 2_000;

const STANDARD_OUTPUT = 1;

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
    : pino(options, (standardOutput ??= new LogBlocks()));
}

/**
 * Writes the lines of the log to standard output in blocks, in their order. The writes are synchronous, so that at the end
 * of the process none is under way whose outcome nobody hears. They do not wait for a reader: Node makes a pipe
 * non-blocking when `process.stdout` is first looked at.
 */
class LogBlocks {
  /** The lines of the block that is being filled. */
  private lines = '';
  private bytes = 0;
  /** Blocks that a reader has left no room for. */
  private readonly waiting: Buffer[] = [];
  private waitingBytes = 0;
  private retry: NodeJS.Timeout | undefined;

  constructor() {
    setInterval(() => this.flush(), LOG_FLUSH_INTERVAL_MS).unref();
    process.on('exit', () => this.end());
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.waitingBytes + this.bytes + bytes > MAX_WAITING_LOG_BYTES) return;
    if (this.bytes > 0 && this.bytes + bytes > LOG_WRITE_BYTES) {
      this.endBlock();
      this.writeBlocks();
    }
    this.lines += line;
    this.bytes += bytes;
  }

  /** Writes what waits, and returns when it is written, or after MAX_LOG_END_WAIT_MS. Not `flushSync`, which pino calls whenever a line is fatal. */
  end(): void {
    this.endBlock();
    const latest = performance.now() + MAX_LOG_END_WAIT_MS;
    while (!this.writeBlocks() && performance.now() < latest) {
      Atomics.wait(CLOCK, 0, 0, LOG_RETRY_DELAY_MS);
    }
  }

  private flush(): void {
    // While blocks wait, the last one may as well be filled.
    if (this.waiting.length === 0) this.endBlock();
    this.writeBlocks();
  }

  private endBlock(): void {
    if (this.bytes === 0) return;
    this.waiting.push(Buffer.from(this.lines));
    this.waitingBytes += this.bytes;
    this.lines = '';
    this.bytes = 0;
  }

  /** @returns whether no block waits any longer */
  private writeBlocks(): boolean {
    for (let block = this.waiting[0]; block !== undefined; block = this.waiting[0]) {
      const written = tryToWrite(block);
      if (written === undefined) {
        this.retry ??= setTimeout(() => {
          this.retry = undefined;
          this.writeBlocks();
        }, LOG_RETRY_DELAY_MS).unref();
        return false;
      }
      this.waitingBytes -= written;
      if (written === block.length) this.waiting.shift();
      else this.waiting[0] = block.subarray(written);
    }
    return true;
  }
}

/** Loggers of one process share it: lines stay in their order. */
let standardOutput: LogBlocks | undefined;

/** Nobody changes it: to wait for it is to wait for a time. */
const CLOCK = new Int32Array(new SharedArrayBuffer(4));

/** How many bytes are done with: written, or lost because they cannot be; undefined when there is no room for them yet. */
function tryToWrite(block: Buffer): number | undefined {
  try {
    return writeSync(STANDARD_OUTPUT, block);
  } catch (error) {
    // That whoever read the log has gone, or that its disk is full, must not end the service.
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? undefined : block.length;
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

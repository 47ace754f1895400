import { type Level, type Logger, pino } from 'pino';

export type LogLine = Record<string, unknown> & { msg: string; level: number };

/** The log of a tested application, kept for the test to look at. */
export class MemoryLog {
  readonly lines: LogLine[] = [];
  readonly logger: Logger;

  constructor(level: Level | 'silent') {
    this.logger = pino({ level }, { write: (line: string) => void this.lines.push(JSON.parse(line) as LogLine) });
  }

  /** The request lines, oldest first. */
  get requests(): LogLine[] {
    return this.lines.filter((line) => line.msg === 'request');
  }

  get text(): string {
    return this.lines.map((line) => JSON.stringify(line)).join('\n');
  }
}

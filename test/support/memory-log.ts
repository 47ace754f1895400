import { type Level, type Logger, pino } from 'pino';

export type LogLine = Record<string, unknown> & { msg: string; level: number };

/** Keeps the log of a tested application in memory. */
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

  /** Throws when a line contains an API key or one of these secrets. The message does not repeat the secret. */
  assertNoSecrets(secrets: readonly (string | undefined)[]): void {
    const isSecret = (line: string): boolean =>
      /pets_[0-9A-Za-z]{49}/.test(line) || secrets.some((secret) => secret !== undefined && line.includes(secret));
    const leak = this.lines.find((line) => isSecret(JSON.stringify(line)));
    if (leak) throw new Error(`The log holds a secret, in a line with the members ${Object.keys(leak).join(', ')}.`);
  }

  get text(): string {
    return this.lines.map((line) => JSON.stringify(line)).join('\n');
  }
}

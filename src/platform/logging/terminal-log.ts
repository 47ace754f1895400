import { prettyFactory } from 'pino-pretty';

/** Assumed width of a terminal that does not report one. */
const USUAL_COLUMNS = 80;

const DIM = 2;
const RED = 31;
const GREEN = 32;
const YELLOW = 33;
const CYAN = 36;

/** A log line. The members after `msg` are shown for requests. */
interface Line {
  /** ISO 8601. */
  readonly time: string;
  readonly msg?: string;
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  readonly code?: string;
  readonly durationMs?: number;
  readonly aborted?: boolean;
}

/**
 * The destination of the log when standard output is a terminal: a line for each request that fits the terminal's width,
 * and other lines with their details below. It obeys NO_COLOR, FORCE_COLOR and `TERM=dumb`, as Node does.
 */
export class TerminalLog {
  private readonly hasColors = process.stdout.hasColors();
  private readonly formatOther = prettyFactory({
    colorize: this.hasColors,
    ignore: 'pid,context',
    translateTime: 'SYS:HH:MM:ss',
  });

  constructor() {
    // A closed terminal must not end the service.
    process.stdout.on('error', () => undefined);
  }

  /** Writes one line, given as JSON. */
  write(line: string): void {
    const entry = JSON.parse(line) as Line;
    process.stdout.write(entry.msg === 'request' ? this.formatRequest(entry) : this.formatOther(entry));
  }

  private formatRequest({ time, method, path = '', status, code, durationMs, aborted = false }: Line): string {
    const clock = new Date(time).toTimeString().slice(0, 8);
    const outcome = aborted ? 'aborted' : String(status);
    const end = [code, durationMs === undefined ? undefined : `${durationMs.toFixed(1)} ms`];
    const rest = [clock, method, outcome, ...end].filter((part) => part !== undefined).join(' ');
    const columns = process.stdout.columns || USUAL_COLUMNS;
    const shownPath = shortened(path, columns - rest.length - 1);
    const painted = this.paint(aborted ? RED : colorOf(status), outcome);
    return `${[this.paint(DIM, clock), method, shownPath, painted, ...end].filter(Boolean).join(' ')}\n`;
  }

  private paint(color: number, text: string): string {
    return this.hasColors ? `\x1b[${color}m${text}\x1b[0m` : text;
  }
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(0, length - 1))}…`;
}

function colorOf(status = 0): number {
  if (status >= 500) return RED;
  if (status >= 400) return YELLOW;
  return status >= 300 ? CYAN : GREEN;
}

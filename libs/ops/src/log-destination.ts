import { writeSync } from 'node:fs';

/**
 * Largest write in bytes: whole lines, unless a single line is longer. Linux writes up to PIPE_BUF (4096) bytes to a pipe at
 * once or not at all (pipe(7)), so a write to a full pipe can be repeated as a whole.
 */
const MAX_WRITE_BYTES = 4096;

/** Lines are buffered at most this long, in ms; a crash loses no more. */
const FLUSH_INTERVAL_MS = 500;

/** Delay in ms before a write is repeated for which the reader had no room. */
const RETRY_DELAY_MS = 10;

/** Largest number of bytes that wait for the reader. Further lines are dropped, so that a stuck reader fills no memory. */
const MAX_WAITING_BYTES = 16_777_216;

/** Longest time in ms that the end of the process waits for a slow or stuck reader; the remaining lines are lost. */
const MAX_END_WAIT_MS = 2_000;

const STANDARD_OUTPUT = 1;

/**
 * Standard output as the destination of the log. Beyond MAX_WAITING_BYTES lines are dropped, counted and reported later. The service
 * never waits for a reader: Node makes a pipe non-blocking when `process.stdout` is first used.
 */
export class LogDestination {
  /** Lines that were dropped: too many waited for the reader, or they could not be written. */
  droppedLines = 0;
  /** Called when the reader has read all waiting lines, with the number of lines dropped since the last call. */
  onGap: (lines: number) => void = () => undefined;

  private reportedLines = 0;
  private lines = '';
  private bytes = 0;
  private readonly waiting: Buffer[] = [];
  private waitingBytes = 0;
  private retry: NodeJS.Timeout | undefined;

  constructor() {
    setInterval(() => {
      // While full blocks wait for the reader, the current one can take more lines.
      if (this.waiting.length === 0) this.endBlock();
      this.writeBlocks();
    }, FLUSH_INTERVAL_MS).unref();
    process.on('exit', () => this.end());
  }

  /** Takes one line with its line feed. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.waitingBytes + this.bytes + bytes > MAX_WAITING_BYTES) {
      this.droppedLines++;
      return;
    }
    if (this.bytes > 0 && this.bytes + bytes > MAX_WRITE_BYTES) {
      this.endBlock();
      this.writeBlocks();
    }
    this.lines += line;
    this.bytes += bytes;
  }

  /**
   * Writes all lines; returns when they are written, or after MAX_END_WAIT_MS. Not named `flushSync`: pino would call it
   * after each fatal line.
   */
  end(): void {
    this.endBlock();
    const latest = performance.now() + MAX_END_WAIT_MS;
    while (!this.writeBlocks() && performance.now() < latest) {
      Atomics.wait(NEVER_WRITTEN, 0, 0, RETRY_DELAY_MS);
    }
  }

  private endBlock(): void {
    if (this.bytes === 0) return;
    this.waiting.push(Buffer.from(this.lines));
    this.waitingBytes += this.bytes;
    this.lines = '';
    this.bytes = 0;
  }

  /** Writes blocks while the reader has room for them. False if some are left. */
  private writeBlocks(): boolean {
    let isWritten = false;
    while (this.waiting.length > 0) {
      const block = this.waiting[0] as Buffer;
      let bytes = block.length;
      try {
        bytes = writeSync(STANDARD_OUTPUT, block);
        isWritten = true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
          this.retry ??= setTimeout(() => {
            this.retry = undefined;
            this.writeBlocks();
          }, RETRY_DELAY_MS).unref();
          return false;
        }
        // A closed pipe or a full disk must not end the service.
        this.droppedLines += block.toString().split('\n').length - 1;
        isWritten = false;
      }
      this.waitingBytes -= bytes;
      if (bytes === block.length) this.waiting.shift();
      else this.waiting[0] = block.subarray(bytes);
    }
    const lines = this.droppedLines - this.reportedLines;
    // The report is a line, too, and would be lost now if the last block was.
    if (isWritten && lines > 0) {
      this.reportedLines = this.droppedLines;
      this.onGap(lines);
    }
    return true;
  }
}

/** Never written; `Atomics.wait` on it is a synchronous sleep. */
const NEVER_WRITTEN = new Int32Array(new SharedArrayBuffer(4));

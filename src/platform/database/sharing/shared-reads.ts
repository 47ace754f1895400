import { setImmediate as nextTurn } from 'node:timers/promises';
import { tooManyWaiting, waitedTooLong } from '../connections/queue-errors.js';

interface Reads<Answer> {
  /** The read that new callers share; it has not begun yet. */
  planned: Promise<Answer> | undefined;
  /** Resolves when the running read has ended; never rejects. */
  running: Promise<void> | undefined;
  /** Number of callers that share the planned read. */
  shares: number;
}

/**
 * Runs one read for all callers that request the same key at the same moment. A caller never joins a read that has begun,
 * but the next one. So every answer shows the database at or after the moment of the call, as if each caller had read
 * alone. Nothing is cached, so writes of other instances invalidate nothing.
 */
export class SharedReads<Answer> {
  private readonly reads = new Map<string, Reads<Answer>>();
  /**
   * Whether the last read had several callers. If so, more are likely to arrive in this turn of the event loop, and the next
   * read waits for them.
   */
  private isShared = false;

  /**
   * @param maxKeys largest number of different keys that are being read or wait at the same time
   * @param waitMs longest time in ms that a read waits for the previous one of its key
   */
  constructor(
    private readonly maxKeys: number,
    private readonly waitMs: number,
  ) {}

  /**
   * Returns the answer of a read that begins after this call.
   *
   * @param key identifies the read: calls with the same key must pass an equivalent `load`
   * @throws ApiError UNAVAILABLE when there are too many keys or the wait is too long; the error of `load`
   */
  read(key: string, load: () => Promise<Answer>): Promise<Answer> {
    let reads = this.reads.get(key);
    if (!reads) {
      if (this.reads.size >= this.maxKeys) {
        throw tooManyWaiting();
      }
      reads = { planned: undefined, running: undefined, shares: 0 };
      this.reads.set(key, reads);
    }
    reads.shares++;
    return (reads.planned ??= this.plan(key, reads, load));
  }

  private async plan(key: string, reads: Reads<Answer>, load: () => Promise<Answer>): Promise<Answer> {
    const isMyTurn = await (reads.running === undefined || settlesWithin(reads.running, this.waitMs));
    if (!isMyTurn) {
      reads.shares = 0;
      reads.planned = undefined;
      throw waitedTooLong();
    }
    if (this.isShared) {
      // Callers that arrive in this turn of the event loop join.
      await nextTurn();
    }
    this.isShared = reads.shares > 1;
    reads.shares = 0;
    reads.planned = undefined;
    const read = load();
    reads.running = read.then(ignore, ignore);
    try {
      return await read;
    } finally {
      if (reads.planned === undefined) {
        this.reads.delete(key);
      }
    }
  }
}

function settlesWithin(promise: Promise<void>, timeMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeMs).unref();
    void promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

function ignore(): void {}

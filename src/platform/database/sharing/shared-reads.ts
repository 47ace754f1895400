import { setImmediate as nextTurn } from 'node:timers/promises';
import { tooManyWaiting, waitedTooLong } from '../connections/queue-errors.js';

interface Readings<Answer> {
  /** The reading that those who ask now will share; it has not begun. */
  planned: Promise<Answer> | undefined;
  /** Settles, and is never rejected, when the reading that runs is over. */
  running: Promise<void> | undefined;
  /** How many share the planned reading. */
  shares: number;
}

/**
 * Makes the answer to reads that are asked for at the same moment once. Who asks while a reading of the same thing runs
 * joins the next one, never the one that runs: so every answer shows the database at or after the moment it was asked for,
 * as if each had been read alone. That holds across instances, and nothing has to be invalidated.
 */
export class SharedReads<Answer> {
  private readonly readings = new Map<string, Readings<Answer>>();
  /** Whether readings have been shared lately: then it pays to look who else comes before one begins. */
  private isShared = false;

  /**
   * @param maxKeys how many different things may be read or waited for at a time
   * @param waitMs time in ms that a reading may wait for the one before it
   */
  constructor(
    private readonly maxKeys: number,
    private readonly waitMs: number,
  ) {}

  /**
   * The answer of a reading that begins after this call.
   *
   * @param key names what is read: one key, one `load`
   * @throws ApiError UNAVAILABLE when `maxKeys` is reached or it waited for too long, and whatever `load` throws
   */
  read(key: string, load: () => Promise<Answer>): Promise<Answer> {
    let readings = this.readings.get(key);
    if (!readings) {
      if (this.readings.size >= this.maxKeys) {
        throw tooManyWaiting();
      }
      readings = { planned: undefined, running: undefined, shares: 0 };
      this.readings.set(key, readings);
    }
    readings.shares++;
    return (readings.planned ??= this.plan(key, readings, load));
  }

  private async plan(key: string, readings: Readings<Answer>, load: () => Promise<Answer>): Promise<Answer> {
    const isMyTurn = await (readings.running === undefined || settlesWithin(readings.running, this.waitMs));
    if (!isMyTurn) {
      readings.shares = 0;
      readings.planned = undefined;
      throw waitedTooLong();
    }
    if (this.isShared) {
      // Whoever has arrived in this turn of the event loop joins.
      await nextTurn();
    }
    this.isShared = readings.shares > 1;
    readings.shares = 0;
    readings.planned = undefined;
    const reading = load();
    readings.running = reading.then(ignore, ignore);
    try {
      return await reading;
    } finally {
      if (readings.planned === undefined) {
        this.readings.delete(key);
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

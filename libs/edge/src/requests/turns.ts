// Not the global: fake timers of tests replace it by one that has no `nodeTiming`.
import { performance } from 'node:perf_hooks';
import { TURN_MS } from './server-limits.js';

/** A client by its id; undefined for all requests together whose API key is not known yet, or that need none. */
export type ClientId = bigint | undefined;

/** Those that take turns: the clients, and as one more, the health checks and scrapes without a known key. */
export type TurnTaker = ClientId | 'probes';

/**
 * Bounds the work that begins in one turn of the event loop: what comes later than TURN_MS waits for the next turns, in which the clients
 * take turns. Work that nobody else waits for begins in the next turn at the latest, so a client that is alone loses no time.
 *
 * The queues need no limit of their own: each connection has at most one piece of work in them.
 */
export class Turns {
  /** The work that waits, by client. The first client is next. */
  private readonly queues = new Map<TurnTaker, (() => void)[]>();
  private isWorking = false;
  /** The turn of the event loop that has begun, as libuv counts them. */
  private turn = -1;
  /** When its time is used up, by `now`. */
  private endsAt = 0;

  /** @param now a time in ms, for tests */
  constructor(private readonly now = (): number => performance.now()) {}

  /** Whether a piece of work may begin now. Otherwise it must `wait`. */
  mayBegin(): boolean {
    if (this.queues.size > 0) return false;
    // Not a `setImmediate` at the end of each turn: with it, Node would look for events twice as often.
    if (performance.nodeTiming.uvMetricsInfo.loopCount === this.turn) return this.now() < this.endsAt;
    this.beginTurn();
    return true;
  }

  /** Calls `work`, which must not throw, when it is the client's turn. */
  wait(client: TurnTaker, work: () => void): void {
    const queue = this.queues.get(client);
    if (queue === undefined) this.queues.set(client, [work]);
    else queue.push(work);
    if (!this.isWorking) setImmediate(this.workInNextTurn);
    this.isWorking = true;
  }

  /** As `wait`; resolves with the result of `work`, or rejects with its error. */
  run<Result>(client: ClientId, work: () => Result): Promise<Result> {
    return new Promise<void>((begin) => this.wait(client, begin)).then(work);
  }

  private beginTurn(): void {
    this.turn = performance.nodeTiming.uvMetricsInfo.loopCount;
    this.endsAt = this.now() + TURN_MS;
  }

  private readonly workInNextTurn = (): void => {
    this.beginTurn();
    this.workOn();
  };

  private readonly workOn = (): void => {
    const [first] = this.queues;
    this.isWorking = first !== undefined;
    if (first === undefined) return;
    if (this.now() >= this.endsAt) {
      setImmediate(this.workInNextTurn);
      return;
    }
    const [client, queue] = first;
    const work = queue.shift();
    // The next turn is another client's.
    this.queues.delete(client);
    if (queue.length > 0) this.queues.set(client, queue);
    // After all promises that the work has settled: what waits for them counts, too. Also if the work throws after all.
    queueMicrotask(this.workOnAfterPromises);
    work?.();
  };

  private readonly workOnAfterPromises = (): void => process.nextTick(this.workOn);
}

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/** Returned by `within` when the time is over. */
export const LATE: unique symbol = Symbol('late');

/**
 * Waits for a promise at most `limitMs` ms. A late promise is not cancelled, and its rejection is ignored. Data that arrived
 * while this process was busy is in time.
 *
 * @throws the error of the promise, if it rejects in time
 */
export async function within<Result>(promise: Promise<Result>, limitMs: number): Promise<Result | typeof LATE> {
  const settled = new AbortController();
  const { signal } = settled;
  const late = sleep(limitMs, undefined, { signal })
    // Timers run before sockets are read, so wait until these have been read once.
    .then(() => nextTurn(undefined, { signal }))
    .then(() => nextTurn(undefined, { signal }))
    .then(
      (): typeof LATE => LATE,
      (): typeof LATE => LATE,
    );
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    settled.abort();
  }
}

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/** What `within` returns when the time is over. */
export const LATE: unique symbol = Symbol('late');

/**
 * Waits for a promise at most this long, in ms. A promise that is late goes on, and its rejection is ignored. What has
 * arrived while this process was busy is in time.
 *
 * @throws what the promise is rejected with in time
 */
export async function within<Result>(promise: Promise<Result>, limitMs: number): Promise<Result | typeof LATE> {
  const settled = new AbortController();
  const { signal } = settled;
  const late = sleep(limitMs, undefined, { signal })
    // Timers run before sockets are read.
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

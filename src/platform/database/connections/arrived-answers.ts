import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Resolves when this process has read what had arrived at its connections. After a time in which the process did not run,
 * Node calls timers before it reads: an answer that came meanwhile is in time, although the timer is over.
 */
export async function untilArrivedAnswersAreRead(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '../../errors/startup-error.js';
import { LOCK_TIMEOUT_MS } from './schema-lock.js';

/** Largest number of attempts of one change to get its locks. With the pauses they take two minutes. */
export const LOCK_ATTEMPTS = 30;

/** Pause in ms between two attempts, in which the requests that queued behind the lock are served. */
const PAUSE_MS = 2_000;

/** SQLSTATEs of a statement that did not get a lock in time, and of one that PostgreSQL chose to end a deadlock. */
const NO_LOCK = new Set<unknown>(['55P03', '40P01']);

/** Called after each failed attempt, before the pause, with the number of the attempt, from 1 on. */
export type OnLockRetry = (attempt: number) => void;

/** A change did not get its locks in LOCK_ATTEMPTS attempts. */
export class NoLockError extends StartupError {
  constructor(cause: Error) {
    super(
      `no lock within ${LOCK_TIMEOUT_MS / 1000} s in ${LOCK_ATTEMPTS} attempts (${cause.message}). A long transaction ` +
        'holds it, such as a backup: pg_stat_activity shows it. Run the command again when it has ended',
      { cause },
    );
  }
}

/**
 * Changes the schema; repeats the change when it did not get a lock in time.
 *
 * @param change when it fails, it must either undo its work or be able to continue from there
 * @param pause for tests
 * @throws NoLockError after LOCK_ATTEMPTS attempts; any other error of `change`
 */
export async function withLockRetries(
  change: () => Promise<void>,
  onRetry: OnLockRetry,
  pause: (ms: number) => Promise<unknown> = sleep,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (!NO_LOCK.has((error as { code?: unknown }).code)) throw error;
      if (attempt === LOCK_ATTEMPTS) throw new NoLockError(error as Error);
      onRetry(attempt);
      await pause(PAUSE_MS);
    }
  }
}

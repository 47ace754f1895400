import { StartupError } from '../../errors/startup-error.js';
import { LOCK_ATTEMPTS, withLockRetries } from './schema-lock.js';

const failure = (code: string): Error => Object.assign(new Error('canceling statement due to lock timeout'), { code });

test('a change that never gets its lock is tried 30 times, with pauses, and then fails with an error that names a long transaction as the cause', async () => {
  expect(LOCK_ATTEMPTS).toBe(30);
  const retries: number[] = [];
  let attempts = 0;
  const change = (): Promise<void> => {
    attempts++;
    return Promise.reject(failure(attempts % 2 === 0 ? '55P03' : '40P01'));
  };
  const pauses: number[] = [];
  const pause = (ms: number): Promise<unknown> => Promise.resolve(pauses.push(ms));
  const outcome = await withLockRetries(change, (attempt) => retries.push(attempt), pause).catch(
    (error: unknown) => error as Error,
  );
  expect(outcome).toBeInstanceOf(StartupError);
  expect((outcome as Error).message).toMatch(/^no lock within 2 s in 30 attempts \(.+\)\. A long transaction/);
  expect(attempts).toBe(30);
  expect(retries).toEqual(Array.from({ length: 29 }, (_, index) => index + 1));
  expect(pauses).toEqual(retries.map(() => 2_000));
});

test('an error other than a lock timeout or deadlock ends the attempts at once', async () => {
  const other = failure('42601');
  const retries: number[] = [];
  await expect(
    withLockRetries(
      () => Promise.reject(other),
      (attempt) => retries.push(attempt),
    ),
  ).rejects.toBe(other);
  expect(retries).toEqual([]);
});

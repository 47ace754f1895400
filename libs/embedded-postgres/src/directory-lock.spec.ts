import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartupError } from '#runtime';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-lock-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('at most one of several simultaneous attempts gets the lock, and a later one is refused', async () => {
  for (let round = 0; round < 3; round++) {
    const attempts = await Promise.allSettled(Array.from({ length: 3 }, () => lockDirectory(directory, 0)));
    const locks = attempts.filter((attempt) => attempt.status === 'fulfilled').map(({ value }) => value);
    expect(locks.length).toBeLessThanOrEqual(1);
    const lock: DirectoryLock = locks[0] ?? (await lockDirectory(directory));
    if (round === 0) await expect(lockDirectory(directory, 0)).rejects.toThrow(StartupError);
    await lock.release();
  }
  expect(await readdir(directory)).toEqual([]);
}, 30_000);

test('a path that is too long for a socket is refused', async () => {
  const deep = join(directory, 'x'.repeat(100));
  await mkdir(deep);
  await expect(lockDirectory(deep)).rejects.toThrow(/has too long a path\. Set DATA_DIR/);
});

import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../libs/access/src/api-key-format.js';
import '../../src/app.description.js';
import { createTestApp } from '../support/app.js';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, percentile, tally } from '../support/load.js';
import { ServiceProcess } from '../support/service-process.js';
import { residentMiB } from '../support/witness.js';

/* Hundreds of different invalid keys a second cost valid requests, the database and the memory little. */

const ROUNDS = 3;
/** Length of a round in ms. */
const ROUND_MS = 4_000;
/** Largest allowed rise of the p99 in ms. */
const P99_ALLOWANCE_MS = 100;
/** Largest allowed growth of the memory in MiB. */
const MEMORY_ALLOWANCE_MIB = 64;
/** Queries for unknown keys that the service makes in a second. */
const KEY_QUERIES_PER_SECOND = 100;

/** Unknown keys with valid checksums: the same one again and again, and a different one each time. */
const ONE_KEY = createApiKey('pets_');
const newKey = (): string => createApiKey('pets_');
const sameKey = (): string => ONE_KEY;

const LIST: LoadRequest = { method: 'GET', path: '/v1/pets?limit=1' };

test('a flood of different invalid keys costs valid requests little time, and the database few queries', async () => {
  const app = await createTestApp();
  const service = new ServiceProcess({ ...app.database.settings, RATE_LIMIT_PER_MINUTE: '0' }, tmpdir());
  /** Number of transactions that the database has committed. PostgreSQL's statistics are up to 1 s behind. */
  const countTransactions = async (): Promise<number> => {
    await sleep(1_100);
    const [row] = await app.sql('SELECT xact_commit::int FROM pg_stat_database WHERE datname = current_database()');
    return Number(row?.[0]);
  };
  try {
    const target = { origin: await service.origin(), apiKey: app.apiKey };
    const round = async (key: () => string): Promise<Record<'refused' | 'served' | 'p99' | 'seconds', number>> => {
      const next = (): LoadRequest => ({ ...LIST, headers: { authorization: `Bearer ${key()}` } });
      const startedAt = performance.now();
      const flood = new Load({ ...target, clients: 60, pauseMs: 10, next });
      const valid = new Load({ ...target, clients: 1, pauseMs: 15, next: () => LIST });
      await sleep(ROUND_MS);
      const [refused, served] = [await flood.stop(), await valid.stop()];
      expect([Object.keys(tally(refused)), Object.keys(tally(served))]).toEqual([['401'], ['200']]);
      const seconds = (performance.now() - startedAt) / 1_000;
      return { refused: refused.length, served: served.length, p99: percentile(served, 0.99), seconds };
    };
    // Warm up: the first thousands of requests take longer.
    for (const key of [newKey, sameKey]) await round(key);
    const memoryBefore = residentMiB(service.pid);
    const p99: Record<'same' | 'different', number[]> = { same: [], different: [] };
    for (let count = 0; count < ROUNDS; count++) {
      p99.same.push((await round(sameKey)).p99);
      const before = await countTransactions();
      const different = await round(newKey);
      const transactions = (await countTransactions()) - before;
      p99.different.push(different.p99);
      report('invalid keys', { ...different, transactions });
      const keyQueries = KEY_QUERIES_PER_SECOND * different.seconds;
      expect(different.refused).toBeGreaterThan(1.5 * keyQueries);
      // One query for each valid request, and 70 for everything else.
      expect(transactions).toBeLessThan(keyQueries + different.served + 70);
    }
    // Other load on the machine slows some rounds. A service that keeps valid requests waiting would slow all of them.
    expect(Math.min(...p99.different)).toBeLessThan(Math.min(...p99.same) + P99_ALLOWANCE_MS);
    expect(residentMiB(service.pid) - memoryBefore).toBeLessThan(MEMORY_ALLOWANCE_MIB);
    expect(service.stdout).toContain('"operation":"listPets"');
    expect(service.stdout).not.toMatch(/pets_[0-9A-Za-z]{12}/);
  } finally {
    await service.kill();
    await app.close();
  }
}, 120_000);

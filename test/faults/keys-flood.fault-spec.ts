import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../src/platform/api-keys/api-key-format.js';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { report } from '../support/figures.js';
import { HttpClient } from '../support/http-client.js';

/** Number of rounds. */
const ROUNDS = 3;
/** Length of a round in s. */
const SECONDS = 4;
/** Largest allowed rise of the p99 in ms. */
const P99_ALLOWANCE_MS = 100;
/** Largest allowed growth of the memory in MiB. */
const MEMORY_ALLOWANCE_MIB = 64;
/** Rate of the flood; a slow machine gets half of the rate that it can serve. */
const INVALID_PER_SECOND = 1_000;
const VALID_PER_SECOND = 50;

/** Unknown keys with valid checksums: the same one again and again, and a different one each time. */
const ONE_KEY = createApiKey();
const sameKey = (): string => ONE_KEY;
const differentKeys = createApiKey;

interface Measurement {
  readonly refused: number;
  readonly p99: number;
  readonly seconds: number;
}

test(`a thousand different invalid keys a second raise the p99 of valid requests by less than ${P99_ALLOWANCE_MS} ms, and memory by less than ${MEMORY_ALLOWANCE_MIB} MiB`, async () => {
  const app = await createTestApp();
  const [server, origin] = await startServer(app).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  const log: string[] = [];
  server.stdout?.setEncoding('utf8').on('data', (text: string) => log.push(text));
  try {
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'prometheus', scopes: ['metrics:read'] });
    const client = new HttpClient(origin, app.apiKey);
    const memory = async (): Promise<number> => {
      const { text } = await client.get('/metrics', { apiKey: secret });
      return Number(/^process_resident_memory_bytes (.+)$/m.exec(text)?.[1]) / 2 ** 20;
    };
    // Warm up: the first thousands of requests take longer.
    await Promise.all([flood(origin, INVALID_PER_SECOND, 2, differentKeys), measure(client, 2)]);
    const perSecond = Math.min(INVALID_PER_SECOND, (await mostPerSecond(origin)) / 2);

    // Both floods send the same number of requests, so only the keys can cause a difference, on machines of any speed.
    const measured = async (key: () => string): Promise<Measurement> => {
      const startedAt = performance.now();
      const [refused, times] = await Promise.all([flood(origin, perSecond, SECONDS, key), measure(client, SECONDS)]);
      return { refused, p99: percentile(times, 0.99), seconds: (performance.now() - startedAt) / 1_000 };
    };
    await measured(sameKey);
    const memoryBefore = await memory();
    const same: Measurement[] = [];
    const different: Measurement[] = [];
    let transactions = 0;
    for (let round = 0; round < ROUNDS; round++) {
      same.push(await measured(sameKey));
      const transactionsBefore = await countTransactions(app);
      different.push(await measured(differentKeys));
      transactions += (await countTransactions(app)) - transactionsBefore;
    }
    const memoryGrowth = (await memory()) - memoryBefore;
    const sum = (of: (round: Measurement) => number): number => different.reduce((total, one) => total + of(one), 0);
    const [refused, seconds] = [sum((round) => round.refused), sum((round) => round.seconds)];
    report('invalid keys', {
      refused,
      'in s': Math.round(seconds),
      'p99 with the same key in ms': same.map(({ p99 }) => Math.round(p99)).join(' '),
      'with different keys': different.map(({ p99 }) => Math.round(p99)).join(' '),
      'memory growth in MiB': Math.round(memoryGrowth),
      transactions,
    });

    expect(refused).toBeGreaterThan(0.5 * perSecond * SECONDS * ROUNDS);
    // At most 100 key queries per second, one query per valid request, and 70 a round for everything else.
    expect(transactions).toBeLessThan(100 * seconds + (VALID_PER_SECOND * SECONDS + 70) * ROUNDS);
    // Other load on the machine slows some rounds. A service that keeps valid requests waiting would slow all of them.
    const best = (rounds: readonly Measurement[]): number => Math.min(...rounds.map(({ p99 }) => p99));
    expect(best(different)).toBeLessThan(best(same) + P99_ALLOWANCE_MS);
    expect(memoryGrowth).toBeLessThan(MEMORY_ALLOWANCE_MIB);
  } finally {
    server.kill();
    await once(server, 'close');
    expect(log.join('')).toContain('"operation":"listPets"');
    expect(log.join('')).not.toMatch(/pets_[0-9A-Za-z]{12}/);
    await app.close();
  }
}, 120_000);

/** Starts the built service on the same database. */
async function startServer(app: TestApp): Promise<[ChildProcess, string]> {
  const env = { PATH: process.env['PATH'] ?? '', PORT: '0', ...app.database.settings };
  const server = spawn(process.execPath, ['dist/src/main.js'], {
    cwd: join(import.meta.dirname, '../..'),
    env: { ...env, RATE_LIMIT_PER_MINUTE: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for await (const text of server.stderr as AsyncIterable<Buffer>) {
    const origin = /http:\/\/localhost:\d+/.exec(text.toString())?.[0];
    if (origin !== undefined) return [server, origin.replace('localhost', '127.0.0.1')];
  }
  throw new Error('The service does not start.');
}

/** Sends requests with invalid keys at an even rate, and returns how many were refused. */
async function flood(origin: string, perSecond: number, seconds: number, key: () => string): Promise<number> {
  const client = new HttpClient(origin);
  let refused = 0;
  await evenly(perSecond, seconds, async () => {
    const { status } = await client.get('/v1/pets?limit=1', { apiKey: key() });
    if (status === 401) refused++;
  });
  return refused;
}

/** Refusals a second that this machine can serve while it also runs the clients. */
async function mostPerSecond(origin: string): Promise<number> {
  const client = new HttpClient(origin);
  const requests = 2_000;
  const startedAt = performance.now();
  let left = requests;
  const call = async (): Promise<void> => {
    while (left-- > 0) await client.get('/v1/pets?limit=1', { apiKey: ONE_KEY });
  };
  await Promise.all(Array.from({ length: 20 }, call));
  return requests / ((performance.now() - startedAt) / 1_000);
}

/** Sends valid requests at an even rate, and returns their durations in ms. */
async function measure(client: HttpClient, seconds: number): Promise<number[]> {
  const times: number[] = [];
  await evenly(VALID_PER_SECOND, seconds, async () => {
    const startedAt = performance.now();
    expect((await client.get('/v1/pets?limit=1')).status).toBe(200);
    times.push(performance.now() - startedAt);
  });
  return times;
}

async function evenly(perSecond: number, seconds: number, send: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  const sent: Promise<void>[] = [];
  while (sent.length < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, ((performance.now() - startedAt) / 1_000) * perSecond);
    while (sent.length < due) sent.push(send());
    await sleep(5);
  }
  await Promise.all(sent);
}

/** Number of transactions that the database has committed. PostgreSQL's statistics are up to 1 s behind. */
async function countTransactions(app: TestApp): Promise<number> {
  await sleep(1_100);
  const [row] = await app.sql('SELECT xact_commit::int FROM pg_stat_database WHERE datname = current_database()');
  return Number(row?.[0]);
}

function percentile(times: number[], share: number): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * share)] ?? NaN;
}

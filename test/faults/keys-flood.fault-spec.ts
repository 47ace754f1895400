import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../src/platform/api-keys/api-key-format.js';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { HttpClient } from '../support/http-client.js';

const SECONDS = 10;
/** Largest allowed rise of the p99, in ms, and of the memory, in MiB. */
const P99_ALLOWANCE_MS = 100;
const MEMORY_ALLOWANCE_MIB = 64;
const INVALID_PER_SECOND = 1_000;
const VALID_PER_SECOND = 50;

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
    await Promise.all([flood(origin, 2), measure(client, 2)]);

    const before = { p99: percentile(await measure(client, SECONDS), 0.99), memory: await memory() };
    const transactionsBefore = await countTransactions(app);
    const [refused, times] = await Promise.all([flood(origin, SECONDS), measure(client, SECONDS)]);
    const during = { p99: percentile(times, 0.99), memory: await memory() };
    const transactions = (await countTransactions(app)) - transactionsBefore;
    const show = ({ p99, memory }: typeof before): string => `p99 ${p99.toFixed(1)} ms, ${memory.toFixed(0)} MiB`;
    process.stderr.write(
      `${refused} invalid keys in ${SECONDS} s: before ${show(before)}; during ${show(during)}; ${transactions} transactions\n`,
    );

    expect(refused).toBeGreaterThan(0.5 * INVALID_PER_SECOND * SECONDS);
    // At most 100 key queries per second, one query per valid request, and 200 for everything else.
    expect(transactions).toBeLessThan((100 + VALID_PER_SECOND) * SECONDS + 200);
    expect(during.p99).toBeLessThan(before.p99 + P99_ALLOWANCE_MS);
    expect(during.memory).toBeLessThan(before.memory + MEMORY_ALLOWANCE_MIB);
  } finally {
    server.kill();
    await once(server, 'close');
    expect(log.join('')).toContain('"operation":"listPets"');
    expect(log.join('')).not.toMatch(/pets_[0-9A-Za-z]{12}/);
    await app.close();
  }
}, 60_000);

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

/** Sends unknown keys with valid checksums at an even rate, and returns how many were refused. */
async function flood(origin: string, seconds: number): Promise<number> {
  const client = new HttpClient(origin);
  let refused = 0;
  await evenly(INVALID_PER_SECOND, seconds, async () => {
    const { status } = await client.get('/v1/pets?limit=1', { apiKey: createApiKey() });
    if (status === 401) refused++;
  });
  return refused;
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

/** Number of transactions that the database has committed. Its statistics are 1 s behind. */
async function countTransactions(app: TestApp): Promise<number> {
  await sleep(1_100);
  const [row] = await app.sql('SELECT xact_commit::int FROM pg_stat_database WHERE datname = current_database()');
  return Number(row?.[0]);
}

function percentile(times: number[], share: number): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * share)] ?? NaN;
}

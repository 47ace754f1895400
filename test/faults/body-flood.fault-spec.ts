import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load } from '../support/load.js';
import { createOwnDatabase } from '../support/own-database.js';
import { NOT_DONE } from '../support/witness.js';

/*
 * Hundreds of bodies of the largest size at a time, with as many values that no handler uses as are accepted, or more. A process with little
 * memory survives, and serves other clients at the same time.
 */

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const HEAP_MB = 256;
const CLIENTS = 200;
/** Shortest time of a flood in s. */
const SECONDS = 8;
/** Longest time of a flood in s. */
const MOST_SECONDS = 60;
/** A flood ends when its clients have had this many responses on average, which takes longer on a slow machine. */
const ROUNDS = 5;

let server: PostgresqlServer;
let service: ServiceProcess;
let origin: string;

beforeAll(async () => {
  server = await startPostgresqlServer();
  service = new ServiceProcess(
    {
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
      DATABASE_URL: await createOwnDatabase(server, 'petstore'),
      BOOTSTRAP_API_KEY: API_KEY,
      RATE_LIMIT_PER_MINUTE: '0',
      LOG_LEVEL: 'warn',
    },
    tmpdir(),
  );
  origin = await service.origin();
}, 60_000);
afterAll(async () => {
  await service.kill();
  await server.stop();
});

interface Others {
  readonly counts: Record<string, number>;
  readonly servedAt: readonly number[];
}

/**
 * Lists pets again and again until stopped, on one connection and from a separate process, because this process is busy
 * with the flood. Resolves at the first response. The connection is opened before the flood: Node.js accepts one
 * connection per turn of its event loop, so a new one would wait behind hundreds of bodies.
 */
async function callAsOthers(): Promise<{ stop: () => Promise<Others> }> {
  const clients = join(import.meta.dirname, 'support/clients.js');
  const child = spawn(process.execPath, [clients, origin, API_KEY, '1', String(MOST_SECONDS + 60)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  return {
    stop: async () => {
      child.kill('SIGTERM');
      await closed;
      return JSON.parse(output) as Others;
    },
  };
}

test.each([
  ['as many objects as a body may have', '{}', 5_480, '201'],
  ['more integers than a body may have', '1', 32_000, '400'],
])(
  `a process with ${HEAP_MB} MB survives bodies with %s, and serves other clients`,
  async (name, piece, count, expected) => {
    const begin = '{"name":"b","categoryId":1,"x":[';
    const pieces = Array.from({ length: count }, () => piece);
    const body = `${begin}${pieces.join()}]}`.padEnd(65_530);
    const counts = new Map<string, number>();
    let answers = 0;
    const { stop } = await callAsOthers();
    const floodedAt = Date.now();
    const flood = new Load({
      origin,
      apiKey: API_KEY,
      clients: CLIENTS,
      next: () => ({ method: 'POST', path: '/v1/pets', body }),
      onOutcome: ({ status, failure, text }) => {
        const isRefused = status === 503 && NOT_DONE.test((JSON.parse(text) as { message: string }).message);
        const outcome = isRefused ? 'refused' : String(status ?? failure);
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
        answers++;
      },
    });
    await sleep(SECONDS * 1_000);
    while (answers < ROUNDS * CLIENTS && Date.now() < floodedAt + MOST_SECONDS * 1_000) await sleep(100);
    const others = await stop();
    await flood.stop();
    // Responses before most connections of the flood were open are not counted.
    const times = others.servedAt.filter((time) => time > floodedAt + 1_000);
    const waits = times.slice(1).map((time, index) => time - (times[index] as number));
    report(`bodies with ${name}`, {
      ...Object.fromEntries(counts),
      'responses to others': times.length,
      'median ms': waits.sort((a, b) => a - b)[Math.floor(waits.length / 2)] ?? NaN,
      'slowest ms': waits.at(-1) ?? NaN,
    });
    expect(service.isRunning).toBe(true);
    // A machine that is too slow for a body returns 503, and creates nothing.
    expect([...counts.keys()].filter((outcome) => outcome !== expected && outcome !== 'refused')).toEqual([]);
    expect(counts.get('refused') ?? 0).toBeLessThan(0.1 * answers);
    expect(Object.keys(others.counts)).toEqual(['200']);
    expect(times.length).toBeGreaterThan(1);
  },
  180_000,
);

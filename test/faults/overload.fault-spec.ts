import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { REFUSAL_PAUSE_MS } from '../../libs/edge/src/requests/server-limits.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, send } from '../support/load.js';
import { useOwnServer } from '../support/own-database.js';
import { until } from '../support/until.js';
import { NOT_DONE } from '../support/witness.js';

/*
 * More requests, connections and bodies than the service can serve. It serves admitted requests nearly as fast as before, and
 * refuses the others at once. Health checks are answered all the time.
 */

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const REQUESTS_IN_FLIGHT = 32;

const own = useOwnServer();
let settings: Record<string, string>;
let service: ServiceProcess;
let origin: string;
/** Another process, of a single test. */
let other: ServiceProcess | undefined;

beforeAll(async () => {
  settings = {
    DATABASE_URL: own.url,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'warn',
  };
  service = new ServiceProcess({ ...settings, MAX_REQUESTS_IN_FLIGHT: String(REQUESTS_IN_FLIGHT) }, tmpdir());
  origin = await service.origin();
});
afterEach(() => other?.kill());
afterAll(() => service.kill());

/** Figures of the load generator. */
interface Figures {
  /** Number of responses by status, and of failed connections by error code. */
  readonly counts: Readonly<Record<string, number>>;
  /** Durations in ms of the responses 200 and of the responses 503, in ascending order. */
  readonly served: readonly number[];
  readonly refused: readonly number[];
  /** Times of the responses 200, in ms since 1970. */
  readonly servedAt: readonly number[];
  /** Responses 503 without `Retry-After` or the code `unavailable`. */
  readonly wrong: readonly string[];
}

/**
 * Runs the load generator. Each client sends its next request as soon as it has a response. Resolves at the first one; `figures`
 * come at the end, which `stop` brings earlier.
 */
async function startLoad(origin: string, clients: number, seconds: number) {
  const generator = spawn(
    process.execPath,
    [join(import.meta.dirname, 'support/clients.js'), origin, API_KEY, String(clients), String(seconds)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  generator.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const figures = once(generator, 'close').then(() => JSON.parse(output) as Figures);
  await once(generator.stdout, 'data');
  return { figures, stop: () => generator.kill('SIGTERM') };
}

const load = async (clients: number, seconds: number): Promise<Figures> =>
  (await startLoad(origin, clients, seconds)).figures;

function at(durations: readonly number[], share: number): number {
  return Math.ceil(durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? 0);
}

/** Requests liveness and readiness until stopped, each time on a new connection. */
function observe(): () => Promise<{ looks: number; slowest: number; failed: unknown[] }> {
  let stopped = false;
  const failed: unknown[] = [];
  let looks = 0;
  let slowest = 0;
  const looking = (async () => {
    while (!stopped) {
      for (const path of ['/health/live', '/health/ready']) {
        const { status, failure, durationMs, text } = await send({ method: 'GET', path }, { origin, apiKey: API_KEY });
        looks++;
        slowest = Math.max(slowest, Math.ceil(durationMs));
        if (status !== 200) failed.push([path, status, failure, text]);
      }
      await sleep(50);
    }
  })();
  return async () => {
    stopped = true;
    await looking;
    return { looks, slowest, failed };
  };
}

/** Share of the saturated rate that must be served under overload. */
const SHARE = 0.8;

/**
 * Longest median in ms of a refusal. A refusal waits for no other request, but these clients call again at once, and the
 * service reads nothing from a refused connection for REFUSAL_PAUSE_MS.
 */
const REFUSED_WITHIN_MS = REFUSAL_PAUSE_MS + 250;

test('a thousand clients that connect while the process is busy wait in the queue of the kernel', async () => {
  const clients: Socket[] = [];
  let connected = 0;
  process.kill(service.pid, 'SIGSTOP');
  try {
    while (clients.length < 1_000) {
      const client = connect(Number(new URL(origin).port), '127.0.0.1', () => connected++);
      clients.push(client.on('error', () => undefined));
    }
    // Without a place in the queue, a client would repeat its first packet only after a second.
    await sleep(900);
    expect(connected).toBe(1_000);
  } finally {
    for (const client of clients) client.destroy();
    process.kill(service.pid, 'SIGCONT');
  }
});

test('at four times the load that saturates it, the service serves at least 80 % of its peak and refuses the rest at once', async () => {
  const seconds = 5;
  await load(REQUESTS_IN_FLIGHT, 1);
  let best = 0;
  // The rates of one round are compared with each other, and the best round counts: the speed of a shared machine can
  // halve between two rounds, and other processes disturb single ones.
  for (let round = 0; round < 6 && best <= SHARE; round++) {
    const saturated = await load(REQUESTS_IN_FLIGHT, seconds);
    expect(Object.keys(saturated.counts)).toEqual(['200']);

    const stop = observe();
    const overloaded = await load(4 * REQUESTS_IN_FLIGHT, seconds);
    const health = await stop();
    best = Math.max(best, overloaded.served.length / saturated.served.length);
    report('overload', {
      'requests/s at the peak': Math.round(saturated.served.length / seconds),
      'requests/s at four times the clients': Math.round(overloaded.served.length / seconds),
      refused: overloaded.refused.length,
      'p99 ms at the peak': at(saturated.served, 0.99),
      'p99 ms of those served': at(overloaded.served, 0.99),
      'slowest ms of those served': at(overloaded.served, 1),
      'p50 ms of those refused': at(overloaded.refused, 0.5),
      'looks at health': health.looks,
      'slowest look ms': health.slowest,
    });
    expect(Object.keys(overloaded.counts).sort()).toEqual(['200', '503']);
    expect(overloaded.wrong).toEqual([]);
    expect(health.failed).toEqual([]);
    expect(health.looks).toBeGreaterThan(2);
    expect(health.slowest).toBeLessThan(5_000);
    expect(at(overloaded.served, 1)).toBeLessThan(5_000);
    expect(at(overloaded.refused, 0.5)).toBeLessThan(REFUSED_WITHIN_MS);
  }
  expect(best).toBeGreaterThan(SHARE);
}, 120_000);

test('the limit of open files leaves 300 beside those of connections, and /metrics says how many', async () => {
  const METRICS_TOKEN = 'the-token-of-prometheus+32/characters==';
  other = new ServiceProcess({ ...settings, METRICS_TOKEN }, tmpdir(), { openFiles: 512 });
  const target = { origin: await other.origin(), apiKey: METRICS_TOKEN };
  const { text } = await send({ method: 'GET', path: '/metrics' }, target);
  expect(text).toMatch(/^petstore_http_connections_limit 212$/m);
});

const HEAP_MB = 256;

test.each([
  ['as many objects as a body may have', '{}', 5_480, '201'],
  ['more integers than a body may have', '1', 32_000, '400'],
])(
  `200 bodies of the largest size at a time: a process with ${HEAP_MB} MB survives %s, and serves other clients`,
  async (name, piece, count, expected) => {
    const flooded = (other = new ServiceProcess(
      { ...settings, NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` },
      tmpdir(),
    ));
    const target = { origin: await flooded.origin(), apiKey: API_KEY };
    const pieces = Array.from({ length: count }, () => piece);
    const body = `{"name":"b","categoryId":1,"x":[${pieces.join()}]}`.padEnd(65_530);
    // Its connection is opened before the flood, behind which a new one would wait: Node.js accepts one in a turn.
    const others = await startLoad(target.origin, 1, 120);
    const floodedAt = Date.now();
    const outcomes: string[] = [];
    const flood = new Load({
      ...target,
      clients: 200,
      next: () => ({ method: 'POST', path: '/v1/pets', body }),
      onOutcome: ({ status, failure, text }) => {
        // A machine that is too slow for a body returns 503, and creates nothing.
        const isRefused = status === 503 && NOT_DONE.test((JSON.parse(text) as { message: string }).message);
        outcomes.push(isRefused ? 'refused' : String(status ?? failure));
      },
    });
    await sleep(8_000);
    await until(() => outcomes.length >= 1_000);
    others.stop();
    const { counts, servedAt } = await others.figures;
    await flood.stop();
    const refused = outcomes.filter((outcome) => outcome === 'refused').length;
    // Responses before most connections of the flood were open are not counted.
    const served = servedAt.filter((time) => time > floodedAt + 1_000).length;
    report(`bodies with ${name}`, { responses: outcomes.length, refused, 'responses to others': served });
    expect(flooded.isRunning).toBe(true);
    expect([...new Set(outcomes)].filter((outcome) => outcome !== 'refused')).toEqual([expected]);
    expect(refused).toBeLessThan(0.1 * outcomes.length);
    expect([Object.keys(counts), served > 1]).toEqual([['200'], true]);
  },
  180_000,
);

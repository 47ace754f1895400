import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { depth, report } from './support/depth.js';
import { send } from './support/load.js';

/*
 * More requests and more connections than the service can serve. What it takes on it serves, as fast as ever; the rest is
 * told so at once; and who judges the process gets an answer all the while.
 */

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const REQUESTS_IN_FLIGHT = 32;
const CONNECTIONS = 400;

let server: PostgresqlServer;
let service: ServiceProcess;
let origin: string;

beforeAll(async () => {
  server = await startPostgresqlServer();
  service = new ServiceProcess(
    {
      DATABASE_URL: server.url,
      MIGRATE_ON_START: 'true',
      BOOTSTRAP_API_KEY: API_KEY,
      RATE_LIMIT_PER_MINUTE: '0',
      MAX_REQUESTS_IN_FLIGHT: String(REQUESTS_IN_FLIGHT),
      MAX_CONNECTIONS: String(CONNECTIONS),
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

/** What a generator of load has seen. */
interface Figures {
  /** Answers by status, and connections that failed by code. */
  readonly counts: Readonly<Record<string, number>>;
  /** Time in ms of the answers 200, and of those 503: all of them, in ascending order. */
  readonly served: readonly number[];
  readonly refused: readonly number[];
  /** Answers 503 that did not say all they must. */
  readonly wrong: readonly string[];
}

/** Calls from a process of its own, whose clients send their next request as soon as they have an answer. */
async function load(clients: number, seconds: number): Promise<Figures> {
  const generator = spawn(
    process.execPath,
    [new URL('support/clients.js', import.meta.url).pathname, origin, API_KEY, String(clients), String(seconds)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  for await (const text of generator.stdout.setEncoding('utf8')) output += text as string;
  return JSON.parse(output) as Figures;
}

function at(durations: readonly number[], share: number): number {
  return Math.ceil(durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? 0);
}

/** Looks at liveness and readiness over and over, each time on a new connection, until it is stopped. */
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

test('at four times the load that saturates it, it serves as much as before; the rest is refused at once', async () => {
  const seconds = depth(1, 5);
  await load(REQUESTS_IN_FLIGHT, 1);
  let peak = 0;
  let best = 0;
  // The best of several rounds on both sides, because what else the machine does at the moment is noise.
  for (let round = 0; round < 6 && (round === 0 || best <= 0.8 * peak); round++) {
    const saturated = await load(REQUESTS_IN_FLIGHT, seconds);
    expect(Object.keys(saturated.counts)).toEqual(['200']);
    peak = Math.max(peak, saturated.served.length / seconds);

    const stop = observe();
    const overloaded = await load(4 * REQUESTS_IN_FLIGHT, seconds);
    const health = await stop();
    best = Math.max(best, overloaded.served.length / seconds);
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
    expect(health.slowest).toBeLessThan(2_000);
    expect(at(overloaded.served, 1)).toBeLessThan(5_000);
  }
  expect(best).toBeGreaterThan(0.8 * peak);
}, 120_000);

test('connections beyond MAX_CONNECTIONS are answered 503 or dropped, and health is looked at all the same', async () => {
  const stop = observe();
  const [first, second] = await Promise.all([load(CONNECTIONS - 10, depth(2, 5)), sleep(700).then(() => load(300, 1))]);
  const health = await stop();
  expect([...first.wrong, ...second.wrong]).toEqual([]);
  // Those that have a connection keep it.
  expect(Object.keys(first.counts).sort()).toEqual(['200', '503']);
  // Of those that have none, a few are told why.
  expect(second.counts['503']).toBeGreaterThan(0);
  expect(second.counts['dropped']).toBeGreaterThan(0);
  expect(health.looks).toBeGreaterThan(2);
  expect(health.failed.length).toBeLessThan(health.looks / 2);
  report('too many connections', {
    ...first.counts,
    dropped: Number(second.counts['dropped']),
    'looks at health': health.looks,
    failed: health.failed.length,
  });
  // And when they have gone, all is well.
  expect((await load(8, 0.2)).counts).toEqual({ 200: expect.any(Number) as number });
}, 60_000);

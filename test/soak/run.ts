import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { table } from '#service';
import { petstoreCommand } from '../operation/support/petstore-command.js';
import { Load, type Outcome, percentile } from '../support/load.js';
import { startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { hangUp, Traffic } from './traffic.js';

const MIB = 2 ** 20;

/** Pets in the catalogue at the start. */
const PETS = 20_000;

/** API keys that the clients share, each of a different client. */
const API_KEYS = 4;

/** Smallest number of samples: two for each third after the warm-up. */
const MIN_SAMPLES = 9;

/** Samples per run, and the limits of the time in ms between two of them. */
const SAMPLES = 40;
const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 15_000;

/** As in production: acknowledged changes are on the disk, dead rows are vacuumed. */
const DATABASE_SETTINGS = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', autovacuum: 'on' };

/** The built service, with a probe in its process. */
const PROGRAM = ['--expose-gc', '--import', new URL('probe.js', import.meta.url).href].concat(
  join(import.meta.dirname, '../../dist/bundle/main.js'),
);

/** Figures of the service's process, as the probe reports them. */
type Probed = Readonly<Record<'heapUsed' | 'external' | 'rss' | 'cpuUs' | 'descriptors' | 'handles', number>>;

/** Figures of one interval, in the units of `MEASURES`. */
type Sample = readonly number[];

/** The figures that must stay flat: names, and how much they may grow: a share, or an amount. */
const MEASURES: readonly (readonly [name: string, share: number, allowance: number])[] = [
  ['heap (MiB)', 0.05, 3],
  ['external memory (MiB)', 0.02, 4],
  // Fluctuates: the process keeps freed memory for a while.
  ['resident memory (MiB)', 0.1, 24],
  ['file descriptors', 0, 4],
  ['handles', 0, 4],
  ['CPU a request (µs)', 0.5, 100],
  // Latency depends on other processes of the machine.
  ['p50 (ms)', 0.5, 5],
  ['p99 (ms)', 1, 50],
];

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '250' },
    clients: { type: 'string', default: '16' },
    embedded: { type: 'boolean', default: false },
  },
});
const [minutes, rate, clients] = [Number(values.minutes), Number(values.rate), Number(values.clients)];
const engine = values.embedded ? 'the embedded engine' : 'PostgreSQL 18';
const directory = mkdtempSync(join(tmpdir(), 'petstore-soak-'));
const postgresql = values.embedded ? undefined : await startPostgresqlServer(DATABASE_SETTINGS);
const settings = {
  ...(postgresql === undefined ? { DATA_DIR: join(directory, 'data') } : { DATABASE_URL: postgresql.url }),
  // Rate limits are counted, but never reached.
  RATE_LIMIT_PER_MINUTE: '10000000',
};
let service: ServiceProcess | undefined;
let isInterrupted = false;
process.once('SIGINT', () => (isInterrupted = true));
try {
  progress(`Filling a catalogue of ${PETS} pets`);
  await petstore('migrate');
  await petstore('seed', '--count', String(PETS));
  // One after the other: only one process at a time can open the embedded engine.
  const apiKeys: string[] = [];
  for (let key = 0; key < API_KEYS; key++) apiKeys.push(await createKey(`soak-${key}`, 'pets:read,pets:write'));
  const traffic = new Traffic(PETS, await createKey('soak-metrics', 'metrics:read'));
  service = new ServiceProcess({ ...settings, NODE_ENV: 'production' }, directory, { program: PROGRAM });
  await soak(service, traffic, apiKeys);
} finally {
  await service?.stop('SIGTERM');
  await postgresql?.stop();
  rmSync(directory, { recursive: true, force: true });
}

/** Runs a command of the service on its database, and returns its output. */
async function petstore(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await petstoreCommand(directory, settings, ...args);
  if (code !== 0) throw new Error(`petstore ${args.join(' ')} has failed:\n${stderr}`);
  return stdout.trim();
}

function createKey(client: string, scopes: string): Promise<string> {
  return petstore('keys', 'create', '--quiet', '--client', client, '--scopes', scopes);
}

async function soak(running: ServiceProcess, traffic: Traffic, apiKeys: readonly string[]): Promise<void> {
  const origin = await running.origin();
  const durationMs = minutes * 60_000;
  const intervalMs = Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, durationMs / SAMPLES));
  const samples: Sample[] = [];
  let requests = 0;
  let errors = 0;
  let { cpuUs } = await probe(running);
  const startedAt = performance.now();
  while (!isInterrupted && performance.now() - startedAt < durationMs) {
    const outcomes = await send(origin, traffic, apiKeys, intervalMs);
    const { heapUsed, external, rss, descriptors, handles, cpuUs: cpuUsSoFar } = await probe(running);
    const cpuUsPerRequest = (cpuUsSoFar - cpuUs) / outcomes.length;
    const latencies = [percentile(outcomes, 0.5), percentile(outcomes, 0.99)];
    samples.push([heapUsed / MIB, external / MIB, rss / MIB, descriptors, handles, cpuUsPerRequest, ...latencies]);
    cpuUs = cpuUsSoFar;
    requests += outcomes.length;
    // The log is only counted, and then dropped, because a soak may last for hours.
    errors += running.stdout.split('"level":50').length - 1;
    running.stdout = '';
    progress(`${Math.round((performance.now() - startedAt) / 1000)} s, ${requests} requests, ${traffic.failed} wrong`);
  }
  process.stdout.write(
    `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, ${engine}: ${requests} requests of ${clients} ` +
      `clients, ${traffic.failed} wrong responses, ${errors} errors in the log.\n` +
      'Medians of the first and the last third after the warm-up, which is the first third of the run:\n\n',
  );
  report(samples);
  if (traffic.failed > 0) fail(`Wrong responses, such as ${traffic.failures.join('; ')}.`);
  if (errors > 0) fail('The service has logged errors.');
}

/** Sends requests of all kinds for some time, while some connections break. Returns when all have responses. */
async function send(origin: string, traffic: Traffic, apiKeys: readonly string[], ms: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const onOutcome = (outcome: Outcome): void => {
    outcomes.push(outcome);
    traffic.take(outcome);
  };
  const pauseMs = (1000 * clients) / rate;
  const loads = Array.from({ length: clients }, (_, index) => {
    const apiKey = apiKeys[index % API_KEYS] as string;
    return new Load({ origin, apiKey, clients: 1, next: () => traffic.next(), onOutcome, pauseMs });
  });
  for (const [index, apiKey] of apiKeys.entries()) await hangUp(origin, apiKey, index % 2 === 0);
  await sleep(ms);
  await Promise.all(loads.map((load) => load.stop()));
  return outcomes;
}

/** The figures of the service's process while no request is in flight. */
async function probe(running: ServiceProcess): Promise<Probed> {
  const known = running.stderr.length;
  process.kill(running.pid, 'SIGUSR2');
  for (let waited = 0; waited < 30_000 && running.isRunning; waited += 10) {
    const [, figures] = /^PROBE (.+)\n/m.exec(running.stderr.slice(known)) ?? [];
    if (figures !== undefined) return JSON.parse(figures) as Probed;
    await sleep(10);
  }
  throw new Error(`The service does not respond to the probe:\n${running.stderr}`);
}

/**
 * Prints whether each figure stayed flat after the warm-up, in which code is compiled, and caches and pools fill. A leak grows during
 * the whole run, so it shows between the medians of the first and the last third; outliers do not matter. A fall counts as flat.
 */
function report(samples: readonly Sample[]): void {
  if (samples.length < MIN_SAMPLES)
    return fail(`A verdict needs ${MIN_SAMPLES} samples, and there are ${samples.length}.`);
  const warm = samples.slice(Math.ceil(samples.length / 3));
  const third = Math.floor(warm.length / 3);
  const rows = MEASURES.map(([name, share, allowance], index) => {
    const median = (part: readonly Sample[]): number =>
      part.map((sample) => sample[index] ?? NaN).sort((a, b) => a - b)[Math.floor(part.length / 2)] ?? NaN;
    const [first, last] = [median(warm.slice(0, third)), median(warm.slice(-third))];
    const allowed = Math.max(first * share, allowance);
    const figures = [first, last, last - first, allowed].map((value) => value.toFixed(1));
    return [name, ...figures, last - first <= allowed ? 'flat' : 'NOT FLAT'];
  });
  process.stdout.write(`${table(['figure', 'first', 'last', 'growth', 'allowed', 'verdict'], rows)}\n`);
  const growing = rows.filter((row) => row.at(-1) === 'NOT FLAT').map(([name]) => name);
  if (growing.length > 0) fail(`Not flat: ${growing.join(', ')}.`);
}

function fail(reason: string): void {
  progress(`soak: ${reason}`);
  process.exitCode = 1;
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

import { Command, InvalidArgumentError } from 'commander';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { table } from '../../src/cli/terminal.js';
import { MAX_UNKNOWN_TOKENS } from '../../src/platform/api-keys/api-key.verifier.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { judge, type Tolerance, type Verdict, WARM_UP_SHARE } from './flatness.js';
import { type Holdings, petstore, ProbedService } from './service.js';
import { type Figures, fillWithUnknownKeys, Traffic } from './traffic.js';

const MIB = 2 ** 20;

/** Animals in the catalogue at the start. */
const ANIMALS = 20_000;

/** API keys that the clients share, each of a different client. */
const API_KEYS = 4;

/** Samples per run, and the limits of the time in ms between two of them. */
const SAMPLES = 40;
const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 15_000;

/** Shortest time in ms between two lines of progress when there is no terminal. */
const PROGRESS_INTERVAL_MS = 10_000;

/** As in production: acknowledged changes are on the disk, dead rows are vacuumed. */
const DATABASE_SETTINGS = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', autovacuum: 'on' };

interface Options {
  minutes: number;
  rate: number;
  clients: number;
  embedded?: boolean;
  json?: boolean;
}

/** Figures of the service and its traffic, taken while no request is in flight. */
interface Sample extends Holdings, Figures {
  /** Time in s since the soak began. */
  readonly second: number;
  /** Requests since the soak began. */
  readonly requestsSoFar: number;
  /** Processor time per request in µs since the previous sample. */
  readonly cpuUsPerRequest: number;
}

/** A figure that must stay flat. */
interface Measure {
  readonly name: string;
  readonly unit: string;
  readonly of: (sample: Sample) => number;
  readonly tolerance: Tolerance;
}

const MEASURES: readonly Measure[] = [
  { name: 'heap', unit: 'MiB', of: ({ heapUsed }) => heapUsed / MIB, tolerance: { share: 0.05, allowance: 3 } },
  {
    name: 'external memory',
    unit: 'MiB',
    of: ({ external }) => external / MIB,
    tolerance: { share: 0.02, allowance: 4 },
  },
  // Fluctuates: the process keeps freed memory for a while.
  { name: 'resident memory', unit: 'MiB', of: ({ rss }) => rss / MIB, tolerance: { share: 0.1, allowance: 24 } },
  {
    name: 'file descriptors',
    unit: '',
    of: ({ descriptors }) => descriptors,
    tolerance: { share: 0, allowance: 4 },
  },
  { name: 'handles', unit: '', of: ({ resources }) => resources.length, tolerance: { share: 0, allowance: 4 } },
  {
    name: 'CPU a request',
    unit: 'µs',
    of: ({ cpuUsPerRequest }) => cpuUsPerRequest,
    tolerance: { share: 0.5, allowance: 100 },
  },
  // Latency depends on other processes of the machine.
  { name: 'p50', unit: 'ms', of: ({ p50Ms }) => p50Ms, tolerance: { share: 0.5, allowance: 5 } },
  { name: 'p99', unit: 'ms', of: ({ p99Ms }) => p99Ms, tolerance: { share: 1, allowance: 50 } },
];

const options = new Command('soak')
  .description(
    'Sends mixed traffic to the built service for some time, and reports whether memory, handles, CPU time and latency\n' +
      'stay flat after the warm-up. Exit code 0: all do; 1: a figure does not, or a request had a wrong answer.',
  )
  .option('--minutes <n>', 'how long', numberArgument(0.25, 10_080), 10)
  .option('--rate <n>', 'requests a second', numberArgument(10, 5_000), 250)
  .option('--clients <n>', 'concurrent clients', numberArgument(1, 500), 16)
  .option('--embedded', 'use the embedded engine instead of starting a PostgreSQL 18')
  .option('--json', 'print JSON')
  .showHelpAfterError('(--help tells more)')
  .allowExcessArguments(false)
  .parse()
  .opts<Options>();

const directory = mkdtempSync(join(tmpdir(), 'petstore-soak-'));
let postgresql: PostgresqlServer | undefined;
let service: ProbedService | undefined;
let isInterrupted = false;
let nextProgressAt = 0;
process.once('SIGINT', () => (isInterrupted = true));
try {
  postgresql = options.embedded ? undefined : await startPostgresqlServer(DATABASE_SETTINGS);
  const settings = {
    ...(postgresql === undefined ? { DATA_DIR: join(directory, 'data') } : { DATABASE_URL: postgresql.url }),
    // Rate limits are counted, but never reached.
    RATE_LIMIT_PER_MINUTE: '10000000',
  };
  const keys = await prepare(settings);
  service = new ProbedService(settings, directory);
  report(await soak(service, keys, postgresql?.url));
} finally {
  await service?.stop();
  await postgresql?.stop();
  rmSync(directory, { recursive: true, force: true });
}

interface Keys {
  readonly apiKeys: readonly string[];
  readonly metricsKey: string;
}

interface Run {
  readonly samples: readonly Sample[];
  readonly traffic: Traffic;
  /** Number of lines of level error in the service's log. */
  readonly errors: number;
}

/** Makes the schema, animals and keys with the service's own commands. */
async function prepare(settings: Record<string, string>): Promise<Keys> {
  progress(`Filling a catalogue of ${ANIMALS} animals`);
  await petstore(settings, 'migrate', '--json');
  await petstore(settings, 'seed', '--count', String(ANIMALS));
  const createKey = (client: string, scopes: string): Promise<string> =>
    petstore(settings, 'keys', 'create', '--quiet', '--client', client, '--scopes', scopes);
  const apiKeys: string[] = [];
  // One after the other: only one process at a time can open the embedded engine.
  for (let key = 0; key < API_KEYS; key++) apiKeys.push(await createKey(`soak-${key}`, 'pets:read,pets:write'));
  return { apiKeys, metricsKey: await createKey('soak-metrics', 'metrics:read') };
}

/** @param databaseUrl the database in which keys change during the soak; undefined for the embedded engine */
async function soak(running: ProbedService, keys: Keys, databaseUrl: string | undefined): Promise<Run> {
  const origin = await running.origin();
  const administrator = databaseUrl === undefined ? undefined : new pg.Client(databaseUrl);
  await administrator?.connect();
  if (administrator === undefined) {
    // With PostgreSQL, changes of keys clear this cache before it is full.
    progress("Filling the service's cache of unknown keys");
    await fillWithUnknownKeys(origin, MAX_UNKNOWN_TOKENS);
  }

  const durationMs = options.minutes * 60_000;
  const intervalMs = Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, durationMs / SAMPLES));
  const samples: Sample[] = [];
  let { cpuUs } = await running.probe();
  const startedAt = performance.now();
  const traffic = new Traffic({
    ...keys,
    origin,
    clients: options.clients,
    requestsPerSecond: options.rate,
    animals: ANIMALS,
  });
  try {
    while (!isInterrupted && performance.now() - startedAt < durationMs) {
      await sleep(intervalMs);
      if (!running.isRunning) throw new Error(`The service has ended:\n${running.stderr}`);
      // Every change of a client makes all processes forget their keys and look them up again.
      await administrator?.query('UPDATE client SET rate_limit_per_minute = NULL');
      await traffic.rest();
      const holdings = await running.probe();
      const figures = traffic.takeFigures();
      traffic.resume();
      samples.push({
        ...holdings,
        ...figures,
        second: (performance.now() - startedAt) / 1000,
        requestsSoFar: traffic.requests,
        cpuUsPerRequest: (holdings.cpuUs - cpuUs) / figures.requests,
      });
      ({ cpuUs } = holdings);
      showProgress(samples, traffic, durationMs);
    }
  } finally {
    await traffic.stop();
    await administrator?.end();
  }
  return { samples, traffic, errors: running.errors };
}

function report({ samples, traffic, errors }: Run): void {
  const last = samples.at(-1) as Sample;
  const verdicts = MEASURES.map((measure) => ({ ...measure, ...judge(samples.map(measure.of), measure.tolerance) }));
  const judgedRequests = Math.round(last.requestsSoFar * (1 - WARM_UP_SHARE) * (2 / 3));
  const faults = [
    ...verdicts.filter(({ isFlat }) => !isFlat).map((verdict) => notFlat(verdict, judgedRequests)),
    ...(traffic.failed > 0 ? [`${traffic.failed} requests had a wrong answer, such as ${traffic.failures[0]}`] : []),
    ...(errors > 0 ? [`the service logged ${errors} lines of level error`] : []),
  ];
  const run = {
    machine: `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`,
    engine: options.embedded ? 'embedded' : 'PostgreSQL 18',
    seconds: Math.round(last.second),
    requests: traffic.requests,
    requestsPerSecond: Math.round(traffic.requests / last.second),
    clients: options.clients,
    wrongAnswers: traffic.failed,
    errors,
  };
  if (options.json) {
    const figures = verdicts.map(({ name, unit, first, last: end, growth, allowed, isFlat }) => {
      return { name, unit, first, last: end, growth, allowed, isFlat };
    });
    const kinds = Object.fromEntries(traffic.byKind);
    process.stdout.write(
      `${JSON.stringify({ ...run, isFlat: faults.length === 0, faults, figures, kinds, samples }, null, 2)}\n`,
    );
  } else {
    const rows = verdicts.map(({ name, unit, first, last: end, growth, allowed, isFlat }) => [
      `${name}${unit && ` (${unit})`}`,
      first.toFixed(1),
      end.toFixed(1),
      growth.toFixed(1),
      allowed.toFixed(1),
      isFlat ? 'flat' : 'NOT FLAT',
    ]);
    process.stdout.write(
      `${run.machine}, ${run.engine}. ${run.requests} requests in ${run.seconds} s by ${run.clients} clients: ` +
        `${run.requestsPerSecond}/s, ${run.wrongAnswers} wrong answers, ${errors} errors in the log.\n` +
        `Medians of the first and the last third after the warm-up (the first third of the run), ` +
        `${judgedRequests} requests apart.\n\n` +
        `${table(['figure', 'first', 'last', 'growth', 'allowed', 'verdict'], rows)}\n`,
    );
  }
  if (faults.length > 0) {
    process.stderr.write(`soak: ${faults.join('; ')}.\n`);
    process.exitCode = 1;
  }
}

function notFlat({ name, unit, first, last, growth, allowed }: Measure & Verdict, requests: number): string {
  const [from, to, by, most] = [first, last, growth, allowed].map((value) => `${value.toFixed(1)} ${unit}`.trimEnd());
  const each = unit === 'MiB' ? `, ${Math.round((growth * MIB) / requests)} bytes a request` : '';
  return `${name}: not flat, from ${from} to ${to} over ${requests} requests, which is ${by} more${each}, and ${most} are allowed`;
}

function showProgress(samples: readonly Sample[], traffic: Traffic, durationMs: number): void {
  const { second, heapUsed, rss, descriptors, p50Ms, p99Ms } = samples.at(-1) as Sample;
  const text =
    `${Math.round(second)}/${Math.round(durationMs / 1000)} s, ${traffic.requests} requests, ${traffic.failed} wrong, ` +
    `heap ${(heapUsed / MIB).toFixed(1)} MiB, resident ${(rss / MIB).toFixed(0)} MiB, ${descriptors} descriptors, ` +
    `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`;
  if (process.stderr.isTTY) {
    process.stderr.write(`\r\x1b[K${text}${second * 1000 >= durationMs ? '\n' : ''}`);
  } else if (performance.now() >= nextProgressAt) {
    nextProgressAt = performance.now() + PROGRESS_INTERVAL_MS;
    progress(text);
  }
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

function numberArgument(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : NaN;
    if (!(value >= minimum && value <= maximum)) {
      throw new InvalidArgumentError(`It must be a number between ${minimum} and ${maximum}.`);
    }
    return value;
  };
}

import { Command } from 'commander';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { table } from '../src/cli/terminal.js';
import { startPostgresqlServer } from '../test/support/postgresql-server.js';
import { cpuUs, descendants, type RunningServer, startServer } from './processes.js';
import { type Workload, workloads } from './workloads.js';

const ROOT = join(import.meta.dirname, '..');
const API_KEY = 'benchmark-key-benchmark-key';
const OURS = 'petstore';
const REFERENCE = 'hand-written';
const PEERS = [REFERENCE, 'fastify', 'stock-nest', 'bare-http'];

interface Options {
  rows: string;
  rounds: string;
  seconds: string;
  connections: string;
  workloads: string;
  servers: string;
  json?: boolean;
}

/** One server under one workload, once. */
interface Measurement {
  readonly cpuUs: number;
  readonly databaseCpuUs: number;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

interface Result extends Measurement {
  readonly rows: number;
  readonly connections: number;
  readonly workload: string;
  readonly server: string;
}

const options = new Command('bench')
  .description('Measures this service beside what a user would write or pick instead, in one run.')
  .option('--rows <list>', 'sizes of the catalogue; the peers run on the first alone', '100000')
  .option('--rounds <n>', 'rounds, in each of which every server has its turn', '5')
  .option('--seconds <n>', 'length of a turn', '3')
  .option('--connections <list>', 'connections', '32,1')
  .option('--workloads <list>', 'workloads', 'list,status,walk,get,create')
  .option('--servers <list>', 'servers', [OURS, ...PEERS].join(','))
  .option('--json', 'print JSON')
  .parse()
  .opts<Options>();

const numbers = (list: string): number[] => list.split(',').map(Number);
const progress = (text: string): void => void process.stderr.write(`${text}\n`);

const directory = mkdtempSync(join(tmpdir(), 'petstore-bench-'));
/** As in production: what is acknowledged is on the disk. */
const DATABASE_SETTINGS = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  autovacuum: 'on',
  shared_buffers: '1GB',
  max_wal_size: '4GB',
};

const postgresql = await startPostgresqlServer(DATABASE_SETTINGS);
try {
  const results: Result[] = [];
  const servers: Record<string, { startUpMs: number; peakMemoryMiB: number }> = {};
  for (const [index, rows] of numbers(options.rows).entries()) {
    const names = options.servers.split(',').filter((name) => index === 0 || name === OURS);
    results.push(...(await measureSize(rows, names, servers)));
  }
  report(results, servers);
} finally {
  await postgresql.stop();
  rmSync(directory, { recursive: true });
}

/** All servers on a catalogue of one size. */
async function measureSize(
  rows: number,
  names: string[],
  servers: Record<string, { startUpMs: number; peakMemoryMiB: number }>,
): Promise<Result[]> {
  const databaseUrl = await fill(rows);
  const running: RunningServer[] = [];
  try {
    for (const name of names) running.push(await start(name, databaseUrl));
    const selected = workloads(rows).filter(({ name }) => options.workloads.split(',').includes(name));
    for (const workload of selected) await compareAnswers(workload, running);
    const results: Result[] = [];
    for (const workload of selected) {
      for (const connections of numbers(options.connections)) {
        results.push(...(await measureWorkload(workload, connections, rows, running)));
      }
    }
    for (const server of running) {
      servers[`${server.name}${rows === numbers(options.rows)[0] ? '' : ` on ${rows}`}`] = {
        startUpMs: Math.round(server.startUpMs),
        peakMemoryMiB: Math.round(server.peakMemoryMiB()),
      };
    }
    return results;
  } finally {
    for (const server of running) await server.stop();
  }
}

/** Medians of alternating rounds. */
async function measureWorkload(
  workload: Workload,
  connections: number,
  rows: number,
  running: RunningServer[],
): Promise<Result[]> {
  const measured = new Map<string, Measurement[]>(running.map(({ name }) => [name, []]));
  const files = new Map<string, string>();
  for (const server of running) {
    const file = join(directory, `${server.name}-${workload.name}.txt`);
    writeFileSync(file, (await workload.lines(walker(server))).join('\n'));
    files.set(server.name, file);
    // The compiler's time is not the server's.
    await turn(server, file, connections, 1);
  }
  for (let round = 1; round <= Number(options.rounds); round++) {
    progress(`${rows} animals, ${workload.name}, ${connections} connection(s): round ${round} of ${options.rounds}`);
    for (const server of running) {
      const file = files.get(server.name) as string;
      measured.get(server.name)?.push(await turn(server, file, connections, Number(options.seconds)));
    }
  }
  return [...measured].map(([server, all]) => {
    const middle = (field: keyof Measurement): number => median(all.map((each) => each[field]));
    return {
      rows,
      connections,
      workload: workload.name,
      server,
      cpuUs: middle('cpuUs'),
      databaseCpuUs: middle('databaseCpuUs'),
      requestsPerSecond: middle('requestsPerSecond'),
      p50Us: middle('p50Us'),
      p99Us: middle('p99Us'),
    };
  });
}

/** One server under load for some seconds. */
async function turn(server: RunningServer, file: string, connections: number, seconds: number): Promise<Measurement> {
  const postmaster = [postgresql.pid, ...descendants(postgresql.pid)];
  const before = { server: server.cpuUs(), database: cpuUs(postmaster) };
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', join(ROOT, 'bench/load/requests.lua')];
  const { stdout } = await promisify(execFile)('wrk', [...args, server.origin, '--', file, API_KEY]);
  const after = { server: server.cpuUs(), database: cpuUs(postmaster) };
  const result = JSON.parse(/^RESULT (.*)$/m.exec(stdout)?.[1] ?? '{}') as Record<string, number>;
  const requests = result['requests'] ?? 0;
  if (requests === 0 || result['failures'] !== 0) {
    throw new Error(`${server.name} failed under load: ${stdout}`);
  }
  return {
    cpuUs: (after.server - before.server) / requests,
    databaseCpuUs: (after.database - before.database) / requests,
    requestsPerSecond: requests / ((result['durationUs'] ?? 0) / 1_000_000),
    p50Us: result['p50Us'] ?? 0,
    p99Us: result['p99Us'] ?? 0,
  };
}

/** What a server answers must be what ours answers, or its time means nothing. */
async function compareAnswers(workload: Workload, running: RunningServer[]): Promise<void> {
  const expected = new Map<number, string>();
  for (const server of running.filter(({ name }) => name !== 'bare-http')) {
    const lines = await workload.lines(walker(server));
    for (const index of [0, Math.floor(lines.length / 2), lines.length - 1]) {
      const [method, path = '', body] = (lines[index] as string).split('\t');
      const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' };
      const answer = await fetch(server.origin + path, { method, headers, body: body ?? null });
      const text = (await answer.text()).replace(method === 'POST' ? /"id":\d+/ : /^$/, '');
      const seen = `${answer.status} ${text}`;
      if (seen !== (expected.get(index) ?? seen)) {
        throw new Error(`${server.name} answers ${method} ${path} with ${seen}, not ${expected.get(index)}`);
      }
      expected.set(index, seen);
    }
  }
}

/** Follows the links of a server's pages. */
function walker(server: RunningServer): { follow(path: string, pages: number): Promise<string[]> } {
  return {
    follow: async (path, pages) => {
      const paths = [path];
      while (paths.length < pages && server.name !== 'bare-http') {
        const headers = { authorization: `Bearer ${API_KEY}` };
        const answer = await fetch(server.origin + (paths.at(-1) as string), { headers });
        await answer.arrayBuffer();
        const next = /<http:\/\/localhost:3000([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
        if (next === undefined) break;
        paths.push(next);
      }
      return paths;
    },
  };
}

function start(name: string, databaseUrl: string): Promise<RunningServer> {
  const environment = {
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '10',
    BOOTSTRAP_API_KEY: API_KEY,
    PUBLIC_BASE_URL: 'http://localhost:3000/v1',
    RATE_LIMIT_PER_MINUTE: '0',
    NODE_ENV: 'production',
  };
  const args =
    name === OURS
      ? [join(ROOT, 'dist/src/main.js')]
      : ['--import', join(ROOT, 'test/support/register-typescript.js'), join(ROOT, 'bench/peers', `${name}.ts`)];
  return startServer(name, args, environment, '/v1/pets?limit=1', API_KEY);
}

/** A database with so many animals, made by the service's own commands. */
async function fill(rows: number): Promise<string> {
  progress(`Filling a catalogue of ${rows} animals`);
  const name = `bench_${rows}`;
  const administrator = new pg.Client(postgresql.url);
  await administrator.connect();
  await administrator.query(`CREATE DATABASE ${name}`);
  await administrator.end();
  const url = new URL(postgresql.url);
  url.pathname = `/${name}`;
  const petstore = (...args: string[]): void => {
    const env = { ...process.env, DATABASE_URL: url.href, STATEMENT_TIMEOUT_MS: '600000' };
    execFileSync(process.execPath, [join(ROOT, 'dist/src/cli.js'), ...args], { env, stdio: ['ignore', 'ignore', 2] });
  };
  petstore('migrate', '--json');
  petstore('seed', '--count', String(rows));
  const client = new pg.Client(url.href);
  await client.connect();
  await client.query('VACUUM ANALYZE pet');
  await client.end();
  return url.href;
}

function report(results: Result[], servers: Record<string, { startUpMs: number; peakMemoryMiB: number }>): void {
  const machine = `${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  const ratios = results.map((result) => ({ ...result, ratios: ratiosOf(result, results) }));
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ machine, options, results: ratios, servers }, null, 2)}\n`);
    return;
  }
  const round = (value: number, digits = 0): string => value.toFixed(digits);
  const rows = ratios.map((each) => [
    String(each.rows),
    each.workload,
    String(each.connections),
    each.server,
    round(each.cpuUs, 1),
    round(each.databaseCpuUs, 1),
    round(each.requestsPerSecond),
    round(each.p50Us),
    round(each.p99Us),
    each.ratios ? `${round(each.ratios.cpu, 2)} / ${round(each.ratios.rate, 2)} / ${round(each.ratios.p99, 2)}` : '',
  ]);
  const headings = ['animals', 'workload', 'conns', 'server', 'CPU µs', 'PG µs', 'req/s', 'p50 µs', 'p99 µs'];
  const others = Object.entries(servers).map(([name, each]) => [name, `${each.startUpMs}`, `${each.peakMemoryMiB}`]);
  process.stdout.write(
    `${machine}\nMedians of ${options.rounds} alternating rounds of ${options.seconds} s.\n\n` +
      `${table([...headings, `to ${REFERENCE}: CPU / rate / p99`], rows)}\n\n` +
      `${table(['server', 'start-up ms', 'peak memory MiB'], others)}\n`,
  );
}

/** A result beside the one of the reference in the same run; undefined where the reference did not run. */
function ratiosOf(result: Result, results: Result[]): { cpu: number; rate: number; p99: number } | undefined {
  const reference = results.find(
    ({ server, rows, workload, connections }) =>
      server === REFERENCE &&
      rows === result.rows &&
      workload === result.workload &&
      connections === result.connections,
  );
  return (
    reference && {
      cpu: result.cpuUs / reference.cpuUs,
      rate: result.requestsPerSecond / reference.requestsPerSecond,
      p99: result.p99Us / reference.p99Us,
    }
  );
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

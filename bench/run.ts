import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { startPostgresqlServer } from '../test/support/postgresql-server.js';
import { grow, readUpkeep, UPKEEP_SETTINGS, untilRemoval } from './growth.js';
import { now, type ProfiledWorkload, profiled, reportLibraries } from './libraries.js';
import { readLoadResult } from './load/load-result.js';
import { GROWN, OURS, readOptions } from './options.js';
import { buildOrdinary, ownWorkload, reportOrdinary, TEAMS } from './ordinary.js';
import { buildPeers, type Command } from './peers.js';
import { cpuUs, descendants, type RunningServer, startServer } from './processes.js';
import { type Measurement, report, reportStarts, type Result, type Start } from './report.js';
import { type Workload, workloads } from './workloads.js';

const ROOT = join(import.meta.dirname, '..');
const API_KEY = 'benchmark-key-benchmark-key';
/** What `npm start` runs, and the same from the files of which it is made. */
const OURS_COMMAND = ownCommand('dist/bundle/main.js');
const OURS_IN_FILES = ownCommand('dist/src/main.js');

const options = readOptions();
const progress = (text: string): void => void process.stderr.write(`${text}\n`);

const directory = mkdtempSync(join(tmpdir(), 'petstore-bench-'));
/** Durable, as in production: an acknowledged change is on the disk. */
const DATABASE_SETTINGS = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  autovacuum: 'on',
  shared_buffers: '1GB',
  max_wal_size: '4GB',
};

const { keys = 0, idempotencyRows = 0 } = options;
/** Whether the service also runs on a grown database. */
const isGrown = keys > 0;

progress('Building the other servers');
const wanted = options.ordinary || options.libraries ? [] : options.servers.filter((name) => name !== OURS);
const peers = buildPeers(wanted, (name, reason) => progress(`LEFT OUT: ${name}. ${reason}`));

const contestants: Contestant[] = [];
// No other process would resume suspended servers.
process.once('exit', () => contestants.forEach((contestant) => contestant.resume()));
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1));

const postgresql = await startPostgresqlServer({ ...DATABASE_SETTINGS, ...(isGrown && UPKEEP_SETTINGS) });
try {
  await (options.ordinary ? runOrdinary() : options.libraries ? runLibraries() : options.start ? runStarts() : run());
} finally {
  await postgresql.stop();
  rmSync(directory, { recursive: true });
}

function ownCommand(program: string): Command {
  return [process.execPath, '--no-allocation-site-pretenuring', '--min-semi-space-size=16', resolve(ROOT, program)];
}

/** A running server and the size of its catalogue. */
interface Contestant extends RunningServer {
  readonly rows: number;
  /** A file of the API keys that its requests use in turn. */
  readonly apiKeys: string;
}

/** Measures all servers on a catalogue of the first size, and this service on catalogues of the other sizes. */
async function run(): Promise<void> {
  const [size = 0, ...otherSizes] = options.rows;
  const oneKey = join(directory, 'key.txt');
  writeFileSync(oneKey, API_KEY);
  try {
    const databaseUrl = await fill(size);
    for (const name of options.servers) {
      if (name === OURS || peers.has(name))
        contestants.push({ rows: size, apiKeys: oneKey, ...(await start(name, databaseUrl)) });
    }
    for (const rows of otherSizes) {
      contestants.push({ rows, apiKeys: oneKey, ...(await start(OURS, await fill(rows))) });
    }
    const grownUrl = isGrown ? await startGrown(size) : undefined;
    if (options.contract) return await countKeptRows();
    const results: Result[] = [];
    for (const workload of workloads.filter(({ name }) => options.workloads.includes(name))) {
      await compareAnswers(
        workload,
        contestants.filter(({ rows, name }) => rows === size && name !== GROWN),
      );
      for (const connections of options.connections) {
        results.push(...(await measureWorkload(workload, connections)));
      }
    }
    const servers = contestants.map((contestant) => ({
      name: contestant.name,
      rows: contestant.rows,
      startUpMs: Math.round(contestant.startUpMs),
      peakMemoryMiB: Math.round(contestant.peakMemoryMiB()),
    }));
    report(options, results, servers, grownUrl === undefined ? undefined : await readUpkeep(grownUrl));
  } finally {
    for (const contestant of contestants) await contestant.stop();
  }
}

/** Prints how many rows of the contract each server keeps. */
async function countKeptRows(): Promise<void> {
  for (const { name, origin } of contestants) {
    const words = ['run', '--silent', 'contract', '--', '--url', origin, '--key', API_KEY];
    // The runner's code is 1 when a row is broken.
    const judged = promisify(execFile)('npm', words, { cwd: ROOT, maxBuffer: 10_000_000 });
    const { stdout } = await judged.catch((error: { stdout: string }) => error);
    const [count] = /^\d+ of \d+ rows hold\.$/m.exec(stdout) ?? [];
    if (count === undefined) throw new Error(`${name} could not be judged.`);
    process.stdout.write(`${name.padEnd(14)}${count}\n`);
  }
}

/** Measures this service with and without additions of a team. */
async function runOrdinary(): Promise<void> {
  const [size = 0] = options.rows;
  const apiKeys = join(directory, 'key.txt');
  progress('Generating a feature, and building the service with it');
  const copy = await buildOrdinary();
  try {
    const databaseUrl = await fill(size, '', copy.path);
    await query(databaseUrl, `INSERT INTO thing (name) SELECT 'Thing ' || n FROM generate_series(1, ${size}) n`);
    await query(databaseUrl, 'VACUUM ANALYZE thing');
    const env = { DATABASE_URL: databaseUrl };
    const keys = ['keys', 'create', '--client', 'bench', '--quiet'];
    writeFileSync(apiKeys, (await copy.run('dist/src/cli.js', keys, env)).trim());
    // The commands of the copy do not know the feature, which only the program of `ordinary.ts` adds.
    await query(databaseUrl, "UPDATE api_key SET scopes = scopes || '{things:read,things:write}'");
    const command = ownCommand(join(copy.path, 'dist/src/ordinary.main.js'));
    for (const [label, TEAM] of Object.entries(TEAMS)) {
      contestants.push({ rows: size, apiKeys, ...(await start(OURS, databaseUrl, { label, command, TEAM })) });
    }
    const results: Result[] = [];
    for (const workload of workloads.filter(({ name }) => options.workloads.includes(name))) {
      const own = ownWorkload(workload);
      const withFeature = contestants.filter(({ name }) => TEAMS[name]?.includes('feature'));
      for (const connections of options.connections) {
        results.push(...(await measureWorkload(workload, connections)));
        if (own) results.push(...(await measureWorkload(own, connections, withFeature)));
      }
    }
    const failed = results.find(({ failures }) => failures > 0);
    if (failed) throw new Error(`${failed.server} failed requests of ${failed.workload}.`);
    reportOrdinary(results);
  } finally {
    for (const contestant of contestants) await contestant.stop();
    await copy.remove();
  }
}

/** Measures how long each server takes from its start to its first response, which is a page of the database. */
async function runStarts(): Promise<void> {
  const [size = 0] = options.rows;
  const databaseUrl = await fill(size);
  const starts = new Map<string, Start[]>();
  for (let round = 1; round <= options.rounds; round++) {
    progress(`round ${round} of ${options.rounds}`);
    for (const name of options.servers.filter((each) => each === OURS || peers.has(each))) {
      const server = await start(name, databaseUrl);
      const measured = { ms: server.startUpMs, cpuMs: server.cpuUs() / 1_000 };
      starts.set(name, [...(starts.get(name) ?? []), measured]);
      await server.stop();
    }
  }
  const figures = [...starts].map(([name, all]) => ({
    name,
    ms: Math.round(median(all.map(({ ms }) => ms))),
    cpuMs: Math.round(median(all.map(({ cpuMs }) => cpuMs))),
  }));
  reportStarts(options, figures);
}

/** Measures what each library takes of a request. */
async function runLibraries(): Promise<void> {
  const [rows = 0] = options.rows;
  const [connections = 0] = options.connections;
  const apiKeys = join(directory, 'key.txt');
  writeFileSync(apiKeys, API_KEY);
  const measured: ProfiledWorkload[] = [];
  try {
    const databaseUrl = await fill(rows);
    for (const command of [OURS_IN_FILES, profiled(OURS_IN_FILES, directory)]) {
      // A limit that nobody reaches: the check costs time, too.
      const limit = { RATE_LIMIT_PER_MINUTE: '10000000' };
      contestants.push({ rows, apiKeys, ...(await start(OURS, databaseUrl, { command, ...limit })) });
    }
    for (const workload of workloads.filter(({ name }) => ['list', 'get', 'create'].includes(name))) {
      // The first time only warms up, so that compilation is not measured.
      await measureWorkload(workload, connections);
      const from = now();
      const [{ cpuUs }] = (await measureWorkload(workload, connections)) as [Result];
      measured.push({ name: workload.name, from, to: now(), cpuUs });
    }
  } finally {
    for (const contestant of contestants) await contestant.stop();
  }
  reportLibraries(directory, measured);
}

/** Starts this service on a catalogue with API keys and idempotency keys, and waits until it removes expired ones. */
async function startGrown(size: number): Promise<string> {
  const databaseUrl = await fill(size, '_grown');
  progress(`Adding ${keys} API keys and ${idempotencyRows} idempotency keys`);
  const apiKeys = join(directory, 'keys.txt');
  writeFileSync(apiKeys, (await grow(databaseUrl, keys, idempotencyRows)).join('\n'));
  contestants.push({ rows: size, apiKeys, ...(await start(OURS, databaseUrl, { label: GROWN })) });
  progress('Waiting for the removal of expired idempotency keys');
  await untilRemoval(databaseUrl);
  return databaseUrl;
}

/** Medians over all rounds. Every server has one turn in each round. */
async function measureWorkload(workload: Workload, connections: number, measuring = contestants): Promise<Result[]> {
  const measured = new Map<Contestant, Measurement[]>(measuring.map((contestant) => [contestant, []]));
  const files = new Map<Contestant, string>();
  for (const contestant of measuring) {
    const file = join(directory, `${contestants.indexOf(contestant)}-${workload.name}.txt`);
    writeFileSync(file, (await workload.lines(contestant.rows, walker(contestant))).join('\n'));
    files.set(contestant, file);
    // Warm up, so that compilation is not measured.
    await turn(contestant, file, connections, 1);
  }
  for (let round = 1; round <= options.rounds; round++) {
    progress(`${workload.name}, ${connections} connection(s): round ${round} of ${options.rounds}`);
    for (const contestant of measuring) {
      const file = files.get(contestant) as string;
      measured.get(contestant)?.push(await turn(contestant, file, connections, options.seconds));
    }
  }
  return [...measured].map(([{ name, rows }, all]) => {
    const middle = (field: keyof Measurement): number => median(all.map((each) => each[field]));
    return {
      rows,
      connections,
      workload: workload.name,
      server: name,
      cpuUs: middle('cpuUs'),
      databaseCpuUs: middle('databaseCpuUs'),
      requestsPerSecond: middle('requestsPerSecond'),
      p50Us: middle('p50Us'),
      p99Us: middle('p99Us'),
      failures: all.reduce((sum, { failures }) => sum + failures, 0),
    };
  });
}

/**
 * Loads one server for some seconds. With a grown database the other servers are suspended, so that its background work
 * is measured only with its own server.
 */
async function turn(server: Contestant, file: string, connections: number, seconds: number): Promise<Measurement> {
  const others = isGrown ? contestants.filter((contestant) => contestant !== server) : [];
  others.forEach((other) => other.suspend());
  try {
    return await load(server, file, connections, seconds);
  } finally {
    others.forEach((other) => other.resume());
  }
}

async function load(server: Contestant, file: string, connections: number, seconds: number): Promise<Measurement> {
  // Find the processes each time, because PostgreSQL has one per connection.
  const databaseCpuUs = (): number => cpuUs([postgresql.pid, ...descendants(postgresql.pid)]);
  const before = { server: server.cpuUs(), database: databaseCpuUs() };
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', join(ROOT, 'bench/load/requests.lua')];
  const wrk = [
    '-c',
    'ulimit -n "$(ulimit -Hn)"; exec wrk "$@"',
    'wrk',
    ...args,
    server.origin,
    '--',
    file,
    server.apiKeys,
  ];
  const { stdout } = await promisify(execFile)('sh', wrk);
  const after = { server: server.cpuUs(), database: databaseCpuUs() };
  const { requests, durationUs, p50Us, p99Us, failures } = readLoadResult(server.name, stdout);
  return {
    cpuUs: (after.server - before.server) / requests,
    databaseCpuUs: (after.database - before.database) / requests,
    requestsPerSecond: requests / (durationUs / 1_000_000),
    p50Us,
    p99Us,
    failures,
  };
}

/** Throws unless these servers give the same responses; otherwise their times could not be compared. */
async function compareAnswers(workload: Workload, servers: readonly Contestant[]): Promise<void> {
  const expected = new Map<number, string>();
  for (const server of servers.filter(({ name }) => name !== 'bare-http')) {
    const lines = await workload.lines(server.rows, walker(server));
    for (const index of [0, Math.floor(lines.length / 2), lines.length - 1]) {
      const [method, path = '', body] = (lines[index] as string).split('\t');
      const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' };
      const answer = await fetch(server.origin + path, { method, headers, body: body ?? null });
      const text = (await answer.text()).replace(method === 'POST' ? /"id":\d+/ : /^$/, '');
      const seen = `${answer.status} ${text}`;
      if (seen !== (expected.get(index) ?? seen)) {
        throw new Error(`${server.name} responds to ${method} ${path} with ${seen}, not ${expected.get(index)}`);
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

/**
 * @param label the name in the table
 * @param command another program than that of the name
 * @param RATE_LIMIT_PER_MINUTE 0 for no limit
 * @param TEAM additions of a team, for the program of `ordinary.ts`
 */
function start(
  name: string,
  databaseUrl: string,
  { label = name, command = undefined as Command | undefined, RATE_LIMIT_PER_MINUTE = '0', TEAM = '' } = {},
): Promise<RunningServer> {
  const environment = {
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '10',
    BOOTSTRAP_API_KEY: API_KEY,
    PUBLIC_BASE_URL: 'http://localhost:3000/v1',
    RATE_LIMIT_PER_MINUTE,
    NODE_ENV: 'production',
    TEAM,
    // The contract has requests that never end, and waits 10 s for their 408.
    ...(options.contract && { REQUEST_TIMEOUT_MS: '1500' }),
    // The peers do not limit requests in flight.
    MAX_REQUESTS_IN_FLIGHT: String(Math.max(1_000, ...options.connections)),
  };
  const program = (command ?? (name === OURS ? OURS_COMMAND : peers.get(name))) as Command;
  return startServer(label, program, environment, '/v1/pets?limit=1', API_KEY);
}

/** Makes a database with this many pets, with the service's own commands. */
async function fill(rows: number, suffix = '', root = ROOT): Promise<string> {
  progress(`Filling a catalogue of ${rows} pets`);
  const name = `bench_${rows}${suffix}`;
  await query(postgresql.url, `CREATE DATABASE ${name}`);
  const url = new URL(postgresql.url);
  url.pathname = `/${name}`;
  const petstore = (...args: string[]): void => {
    const env = { ...process.env, DATABASE_URL: url.href, STATEMENT_TIMEOUT_MS: '600000' };
    execFileSync(process.execPath, [join(root, 'dist/src/cli.js'), ...args], { env, stdio: ['ignore', 'ignore', 2] });
  };
  petstore('migrate');
  petstore('seed', '--count', String(rows));
  await query(url.href, 'VACUUM ANALYZE pet');
  return url.href;
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(sql);
  await client.end();
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { petstoreCommand } from '../../../test/operation/support/petstore-command.js';
import { databaseUrl } from '../../../test/support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../../../test/support/postgresql-server.js';
import { ServiceProcess } from '../../../test/support/service-process.js';
import { freePort } from '../../../test/support/programs.js';
import { report } from '../../../test/support/figures.js';
import { Load, type LoadRequest, type Outcome, percentile, send, tally } from '../../../test/support/load.js';
import { createOwnDatabase, petsOf, rowsOf } from '../../../test/support/own-database.js';
import { balance, creation, NOTHING_WRONG } from '../../../test/support/witness.js';

/*
 * WEB_CONCURRENCY: several processes share one port. They are killed one by one and all at once, and are stopped by
 * signals.
 */

// A test starts several processes, each of which takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const PROCESSES = 3;
const API_KEY = 'bootstrap-key-of-the-fault-tests';
const PETS: LoadRequest = { method: 'GET', path: '/v1/pets' };

let server: PostgresqlServer;
let settings: Record<string, string>;
const running: ServiceProcess[] = [];

beforeAll(async () => {
  server = await startPostgresqlServer();
  settings = {
    DATABASE_URL: await createOwnDatabase(server, 'petstore'),
    DATABASE_POOL_SIZE: '4',
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    WEB_CONCURRENCY: String(PROCESSES),
  };
}, 60_000);
afterEach(async () => {
  for (const group of running.splice(0)) await group.kill();
});
afterAll(() => server.stop());

function start(more: Record<string, string> = {}): ServiceProcess {
  const group = new ServiceProcess({ ...settings, ...more }, tmpdir());
  running.push(group);
  return group;
}

interface LogLine {
  readonly pid: number;
  readonly msg: string;
  readonly ended?: number;
  readonly delayMs?: number;
  readonly operation?: string;
}

function logOf({ stdout }: ServiceProcess): LogLine[] {
  // The last line may be incomplete.
  return stdout
    .slice(0, stdout.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LogLine);
}

/** Sends requests until a condition holds, each on a new connection, so that every process gets some. */
async function until(origin: string, holds: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 60_000; !holds();) {
    if (Date.now() > deadline) throw new Error(`Not within 60 s: ${holds.toString()}`);
    await send(PETS, { origin, apiKey: API_KEY, timeoutMs: 2_000 });
    await sleep(20);
  }
}

async function createMetricsKey(): Promise<string> {
  const command = 'keys create --client prometheus --scopes metrics:read --quiet';
  return (await petstoreCommand(tmpdir(), settings, ...command.split(' '))).stdout.trim();
}

/** A scrape waits for processes of the group that are starting, and gets 503 if they take over 5 s. Then it is repeated. */
async function scrape(origin: string, apiKey: string): Promise<string> {
  for (;;) {
    const { status, text } = await send({ method: 'GET', path: '/metrics' }, { origin, apiKey });
    if (status === 200) return text;
    expect(status).toBe(503);
  }
}

/** The processes that have logged a request. */
function servingPids(group: ServiceProcess): Set<number> {
  return new Set(
    logOf(group)
      .filter(({ msg }) => msg === 'request')
      .map(({ pid }) => pid),
  );
}

/** Starts a group and waits until each of its processes has answered a request. */
async function startedGroup(
  more?: Record<string, string>,
): Promise<{ group: ServiceProcess; origin: string; pids: number[] }> {
  const group = start(more);
  const origin = await group.origin();
  const processes = Number(more?.['WEB_CONCURRENCY'] ?? PROCESSES);
  await until(origin, () => servingPids(group).size === processes);
  return { group, origin, pids: [...servingPids(group)] };
}

/** Whether a process runs. A zombie does not. */
function runs(pid: number): boolean {
  return /^[^Z]/.test(spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout);
}

function statuses(outcomes: readonly Outcome[], status: number): number {
  return outcomes.filter((outcome) => outcome.status === status).length;
}

test('the processes share one port, and a scrape of any of them returns the metrics of all', async () => {
  const { group, origin, pids } = await startedGroup();
  expect(pids).not.toContain(group.pid);
  expect(group.stderr.split('\n')).toEqual([
    `The Pet Store Service listens on ${origin}/v1`,
    expect.stringMatching(/^To make an API key: .+ keys create --client my-app$/),
    `Documentation: ${origin}/docs`,
    '',
  ]);

  const apiKey = await createMetricsKey();
  const countsOf = async (): Promise<Map<string, number>> => {
    const series = /^petstore_http_request_duration_seconds_count\{operation="listPets".*process="(\d+)".*\} (\d+)$/gm;
    return new Map(
      [...(await scrape(origin, apiKey)).matchAll(series)].map(([, id = '', count]) => [id, Number(count)]),
    );
  };
  const sumOf = (counts: Map<string, number>): number => [...counts.values()].reduce((sum, count) => sum + count, 0);
  const first = await countsOf();
  expect(first.size).toBe(PROCESSES);
  await Promise.all(Array.from({ length: 30 }, () => send(PETS, { origin, apiKey: API_KEY })));
  const scrapes = [await countsOf(), await countsOf(), await countsOf(), await countsOf()];
  expect(scrapes.map(sumOf)).toEqual(scrapes.map(() => sumOf(first) + 30));

  // A scrape succeeds without an ended process, and changes no series of another one.
  process.kill(pids[0] as number, 'SIGKILL');
  await until(origin, () => logOf(group).some(({ ended }) => ended === pids[0]));
  const text = await scrape(origin, apiKey);
  expect(text).toMatch(/^petstore_process_restarts_total 1$/m);
  const left = await countsOf();
  const known = [...left].filter(([id]) => first.has(id));
  expect(known.length).toBe(PROCESSES - 1);
  for (const [id, count] of known) expect(count).toBeGreaterThanOrEqual(scrapes[0]?.get(id) as number);
  expect(await group.stop('SIGTERM')).toBe(0);
});

test('a suspended process does not block scrapes of the other processes', async () => {
  const { group, origin, pids } = await startedGroup();
  process.kill(pids[0] as number, 'SIGSTOP');
  try {
    const scrapes = Array.from({ length: 2 * PROCESSES }, () =>
      send({ method: 'GET', path: '/metrics' }, { origin, apiKey: API_KEY, timeoutMs: 4_000 }),
    );
    // The key lacks the scope, so 403 is a response. Scrapes that the suspended process accepted get none.
    expect(statuses(await Promise.all(scrapes), 403)).toBeGreaterThanOrEqual(PROCESSES);
  } finally {
    process.kill(pids[0] as number, 'SIGCONT');
  }
  expect(await group.stop('SIGTERM')).toBe(0);
});

test('a killed process is replaced, and the service stays up', async () => {
  const { group, origin } = await startedGroup();
  // Pauses leave CPU time for a process that starts.
  const load = new Load({ origin, apiKey: API_KEY, clients: 8, next: () => PETS, pauseMs: 5, timeoutMs: 5_000 });
  const kills = 5;
  for (let kill = 0; kill < kills; kill++) {
    const victim = [...servingPids(group)].filter(runs).at(-1) as number;
    process.kill(victim, 'SIGKILL');
    const known = servingPids(group);
    await until(origin, () => [...servingPids(group)].some((pid) => !known.has(pid)));
  }
  const outcomes = await load.stop();
  const lost = outcomes.filter(({ status }) => status !== 200);
  // Each client loses at most its one connection to a killed process, and the port always accepts connections. A connection
  // that is handed to a process as it dies gets no response.
  const unanswered = lost.filter(({ failure }) => failure !== 'ECONNRESET');
  expect(unanswered.length).toBeLessThanOrEqual(kills);
  expect(unanswered.filter(({ failure }) => !failure?.startsWith('no response'))).toEqual([]);
  expect(lost.length).toBeLessThanOrEqual(8 * kills);
  expect(statuses(outcomes, 200)).toBeGreaterThan(lost.length);
  expect(servingPids(group).size).toBeGreaterThanOrEqual(PROCESSES + kills);
  report('a process is killed', { kills, requests: outcomes.length, lost: lost.length, ...tally(lost) });
  expect(await group.stop('SIGTERM')).toBe(0);
}, 240_000);

test('processes that die at once are all replaced, and the delay doubles each time they die again', async () => {
  const { group, origin, pids } = await startedGroup({ PORT: String(await freePort()) });
  const died = (): LogLine[] => logOf(group).filter(({ ended }) => ended !== undefined);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await until(origin, () => died().length >= PROCESSES);
  const rounds = 3;
  for (let round = 0; round < rounds; round++) {
    const dead = new Set(died().map(({ ended }) => ended));
    const alive = (): number[] => [...servingPids(group)].filter((pid) => !dead.has(pid));
    await until(origin, () => alive().length === PROCESSES);
    const victims = alive();
    for (const pid of victims) process.kill(pid, 'SIGKILL');
    await until(origin, () => died().length >= PROCESSES * (round + 2));
  }
  const delays = died().map(({ delayMs }) => delayMs);
  const expected = Array.from({ length: rounds + 1 }, (_, round) => Array<number>(PROCESSES).fill(100 * 2 ** round));
  expect(delays).toEqual(expected.flat());
  expect(await group.stop('SIGTERM')).toBe(0);
}, 120_000);

test.each([
  ['SIGTERM', 1],
  ['SIGTERM', PROCESSES],
  ['SIGINT', PROCESSES],
  ['SIGHUP', PROCESSES],
] as const)('%s drains %d processes: every accepted request gets a response', async (signal, count) => {
  const { group, origin, pids } = await startedGroup({ WEB_CONCURRENCY: String(count) });
  const prefix = `${signal}-${count}`;
  // Clients without a pause are always busy. With the other pauses, some connections are idle at any moment, or about to send.
  const loads = [0, 5, 30, 100].map((pauseMs) => {
    const next = (index: number): LoadRequest => (index % 2 === 0 ? PETS : creation(`${prefix}-${pauseMs}-${index}`));
    return new Load({ origin, apiKey: API_KEY, clients: 8, next, pauseMs });
  });
  // A connection without a request does not delay the end.
  const silent = connect(Number(new URL(origin).port), '127.0.0.1').on('error', () => undefined);
  await sleep(500);
  // Signal every process, as a terminal does.
  for (const pid of pids) process.kill(pid, signal);
  expect(await group.stop(signal)).toBe(0);
  silent.destroy();
  const outcomes = (await Promise.all(loads.map((load) => load.stop()))).flat();
  const lost = outcomes.filter(({ status }) => status !== 200 && status !== 201);
  // Only new connections may fail: the port is closed, or the kernel held a connection that no process had accepted.
  expect(lost.filter(({ failure, reused }) => reused || !/^ECONN(REFUSED|RESET)$/.test(failure ?? ''))).toEqual([]);
  const made = balance(outcomes, await petsOf(settings['DATABASE_URL'] as string, prefix));
  expect(made).toMatchObject({ ...NOTHING_WRONG, unacknowledgedButThere: 0 });
  expect(made.acknowledged).toBeGreaterThan(0);
  expect(pids.filter(runs)).toEqual([]);
  expect(group.stderr).toMatch(/^The Pet Store Service [^\n]+\nTo make [^\n]+\nDocumentation: [^\n]+\n$/);
  expect(group.stdout).not.toContain('Cutting');
  report(`${signal} to ${count} processes`, { ...tally(outcomes), 'slowest ms': Math.ceil(percentile(outcomes, 1)) });
});

test('a statement that outlasts SHUTDOWN_TIMEOUT_MS is cut, and the exit code is 1', async () => {
  const short = { WEB_CONCURRENCY: '1', SHUTDOWN_TIMEOUT_MS: '700', STATEMENT_TIMEOUT_MS: '60000' };
  const { group, origin } = await startedGroup(short);
  const client = new pg.Client({ connectionString: databaseUrl(server.url, 'petstore') });
  await client.connect();
  try {
    await client.query('BEGIN; LOCK TABLE pet IN EXCLUSIVE MODE');
    const body = '{"name":"Rex","categoryId":1}';
    const stuck = send({ method: 'POST', path: '/v1/pets', body }, { origin, apiKey: API_KEY });
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
    while ((await rowsOf(server.url, waiting)).length === 0) await sleep(20);
    expect(await group.stop('SIGTERM')).toBe(1);
    expect((await stuck).status).toBeUndefined();
    expect(group.stdout).toContain('"Cutting 1 requests that did not finish within 700 ms: createPet."');
    expect(group.stderr).toMatch(/\npetstore: The database did not close /);
  } finally {
    await client.end();
  }
});

test('one process that gets SIGTERM drains and is replaced', async () => {
  const { group, origin, pids } = await startedGroup();
  process.kill(pids[0] as number, 'SIGTERM');
  await until(origin, () => servingPids(group).size === PROCESSES + 1);
  expect(logOf(group).map(({ msg }) => msg)).toContain('A process ended (exit code 0); another starts in 100 ms.');
  expect(await group.stop('SIGTERM')).toBe(0);
});

test('a second signal, more than a second after the first, ends all processes at once', async () => {
  const { group, origin, pids } = await startedGroup({ SHUTDOWN_DELAY_MS: '600000' });
  process.kill(group.pid, 'SIGTERM');
  process.kill(group.pid, 'SIGINT');
  // Workers drain because the primary told them to, so it has received both signals.
  const isDraining = async (): Promise<boolean> =>
    (await send({ method: 'GET', path: '/health/ready' }, { origin, apiKey: API_KEY })).status === 503;
  for (const deadline = Date.now() + 20_000; !(await isDraining()); await sleep(20)) {
    if (Date.now() > deadline) throw new Error('The group does not drain.');
  }
  await sleep(1_200);
  expect(pids.every(runs)).toBe(true);
  expect(await group.stop('SIGTERM')).toBe(1);
  expect(pids.filter(runs)).toEqual([]);
});

test('no process outlives the primary process, even if that one is killed', async () => {
  const { group, origin, pids } = await startedGroup();
  const load = new Load({ origin, apiKey: API_KEY, clients: 8, next: () => PETS });
  await sleep(300);
  // `ended` resolves after all processes that share the output have ended.
  expect(await group.stop('SIGKILL')).toBeNull();
  const outcomes = await load.stop();
  expect(pids.filter(runs)).toEqual([]);
  report('the primary process is killed', tally(outcomes));
});

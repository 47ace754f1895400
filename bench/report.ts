import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { table } from '#service';
import { type Bar, chart } from './chart.js';
import type { UpkeepReport } from './growth.js';
import { GROWN, type Options, OURS } from './options.js';
import { GO, REFERENCE, RUST, STOCK } from './peers.js';

/** How the chart names workloads and servers. */
const IN_WORDS: Readonly<Record<string, string>> = {
  list: 'List the first page of pets',
  status: 'List the first page of one status',
  walk: 'Follow the pages by cursor',
  get: 'Get a pet by its id',
  create: 'Add a pet',
  'create-once': 'Add a pet with an Idempotency-Key',
  [OURS]: 'this service',
  'hand-written': 'hand-written TypeScript',
  fastify: 'Fastify',
  [STOCK]: 'stock Nest',
  [GO]: 'Go',
  [RUST]: 'Rust',
};

/** Figures of one server under one workload, in one turn. */
export interface Measurement {
  readonly cpuUs: number;
  readonly databaseCpuUs: number;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Requests without a response, or with an error. They count as requests, too, if they have a response. */
  readonly failures: number;
}

/** Medians of all turns; the failures are their sum. */
export interface Result extends Measurement {
  readonly rows: number;
  readonly connections: number;
  readonly workload: string;
  readonly server: string;
}

/** Start-up time and peak memory of a server. */
export interface ServerFigures {
  readonly name: string;
  readonly rows: number;
  readonly startUpMs: number;
  readonly peakMemoryMiB: number;
}

/** Time from the start of a server to its first response, and the processor time of its processes until then. */
export interface Start {
  readonly ms: number;
  readonly cpuMs: number;
}

/** Prints the medians of all starts, with their ratios to stock Nest if it ran. */
export function reportStarts(options: Options, starts: readonly (Start & { readonly name: string })[]): void {
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ machine: machine(), options, starts }, null, 2)}\n`);
    return;
  }
  const stock = starts.find(({ name }) => name === STOCK);
  const ratio = (own: number, other: number | undefined): string =>
    other === undefined ? '' : (own / other).toFixed(2);
  const head = ['server', 'ms', `of ${STOCK}`, 'processor ms', `of ${STOCK}`];
  const rows = starts.map(({ name, ms, cpuMs }) => {
    return [name, String(ms), ratio(ms, stock?.ms), String(cpuMs), ratio(cpuMs, stock?.cpuMs)];
  });
  process.stdout.write(`${machine()}\nTo the first response, medians of ${options.rounds} alternating starts.\n\n`);
  process.stdout.write(`${table(head, rows)}\n`);
}

function machine(): string {
  return `${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
}

/** Prints all figures, as tables or JSON, and writes the chart. */
export function report(
  options: Options,
  results: readonly Result[],
  servers: readonly ServerFigures[],
  upkeep: UpkeepReport | undefined,
): void {
  if (options.chart !== undefined) writeChart(options.chart, options, results);
  const compared = results.map((result) => ({ ...result, ...comparisonsOf(result, results, options) }));
  if (options.json) {
    process.stdout.write(
      `${JSON.stringify({ machine: machine(), options, results: compared, servers, upkeep }, null, 2)}\n`,
    );
    return;
  }
  process.stdout.write(`${machine()}\nMedians of ${options.rounds} alternating rounds of ${options.seconds} s.\n\n`);
  reportResults(compared);
  reportServers(servers);
  if (upkeep) reportUpkeep(upkeep);
}

function writeChart(
  file: string,
  { rows: [size], connections: [connections] }: Options,
  results: readonly Result[],
): void {
  const shown = results.filter(
    (each) => each.rows === size && each.connections === connections && each.server !== 'bare-http',
  );
  writeFileSync(file, chart(`Processor time per request at ${connections} connections, in µs`, shown.map(inWords)));
}

function inWords({ workload, server, ...figures }: Bar): Bar {
  return { ...figures, workload: IN_WORDS[workload] ?? workload, server: IN_WORDS[server] ?? server };
}

function reportResults(results: readonly (Result & Comparisons)[]): void {
  const round = (value: number, digits = 0): string => value.toFixed(digits);
  const rows = results.map((each) => [
    String(each.rows),
    each.workload,
    String(each.connections),
    each.server,
    round(each.cpuUs, 1),
    round(each.databaseCpuUs, 1),
    round(each.cpuUs + each.databaseCpuUs, 1),
    round(each.requestsPerSecond),
    round(each.p50Us),
    round(each.p99Us),
    String(each.failures),
    ratio(each.toReference, 'cpu', 'rate', 'p99'),
    ratio(each.toGo, 'cpu'),
    ratio(each.toRust, 'sum', 'rate'),
    ratio(each.toFirst, 'rate', 'p99'),
  ]);
  const figures = ['CPU µs', 'PG µs', 'sum µs', 'req/s', 'p50 µs', 'p99 µs', 'failed'];
  const comparisons = ['CPU / rate / p99 to the reference', 'CPU to Go', 'sum / rate to Rust', 'rate / p99 to first'];
  const headings = ['pets', 'workload', 'conns', 'server', ...figures, ...comparisons];
  process.stdout.write(
    `${table(headings, rows)}\n\n` +
      '"failed" counts requests without a response or with an error, in all rounds. Those with a response also count in the other columns.\n' +
      `The reference is ${REFERENCE}. For ${OURS} with another number of pets, and for ${GROWN}, it is ${OURS} with the first number.\n` +
      'The last column compares with the same server at the first number of connections.\n',
  );
}

function reportServers(servers: readonly ServerFigures[]): void {
  const rows = servers.map((each) => [`${each.rows}`, each.name, `${each.startUpMs}`, `${each.peakMemoryMiB}`]);
  process.stdout.write(`\n${table(['pets', 'server', 'start-up ms', 'peak memory MiB'], rows)}\n`);
}

function reportUpkeep({ statements, updates, multixacts }: UpkeepReport): void {
  const rows = statements.map(({ statement, count, meanMs, maxMs, walKiB }) => [
    statement,
    `${count}`,
    meanMs.toFixed(1),
    maxMs.toFixed(1),
    walKiB.toFixed(0),
  ]);
  const updated = updates.map(
    (each) => `${each.table}: ${each.rows}, ${each.withoutIndex} without writing an index (HOT)`,
  );
  process.stdout.write(
    `\nBackground statements of ${GROWN}, in PostgreSQL:\n\n` +
      `${table(['statement', 'count', 'mean ms', 'max ms', 'WAL KiB'], rows)}\n\n` +
      `Updated rows. ${updated.join('; ')}. Multixacts: ${multixacts}.\n`,
  );
}

/** A result relative to another result of the same run. */
interface Ratios {
  readonly cpu: number;
  /** Processor time of server and PostgreSQL together. */
  readonly sum: number;
  readonly rate: number;
  readonly p99: number;
}

/** A result relative to others of its workload; undefined for those that did not run. */
interface Comparisons {
  readonly toReference: Ratios | undefined;
  readonly toGo: Ratios | undefined;
  readonly toRust: Ratios | undefined;
  readonly toFirst: Ratios | undefined;
}

function comparisonsOf(
  result: Result,
  results: readonly Result[],
  { rows: [size], connections: [first] }: Options,
): Comparisons {
  const to = (
    server: string,
    rows = size,
    connections: number | undefined = result.connections,
  ): Ratios | undefined => {
    const other = results.find(
      (each) =>
        each.server === server &&
        each.rows === rows &&
        each.workload === result.workload &&
        each.connections === connections,
    );
    return (
      other && {
        cpu: result.cpuUs / other.cpuUs,
        sum: (result.cpuUs + result.databaseCpuUs) / (other.cpuUs + other.databaseCpuUs),
        rate: result.requestsPerSecond / other.requestsPerSecond,
        p99: result.p99Us / other.p99Us,
      }
    );
  };
  return {
    toReference: to(result.rows === size && result.server !== GROWN ? REFERENCE : OURS),
    toGo: to(GO),
    toRust: to(RUST),
    toFirst: to(result.server, result.rows, first),
  };
}

/** Ratios as a cell of the table. */
function ratio(ratios: Ratios | undefined, ...names: (keyof Ratios)[]): string {
  return ratios ? names.map((name) => ratios[name].toFixed(2)).join(' / ') : '';
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from './peers.js';

/** A workload that the service has had with and without a profile. */
export interface ProfiledWorkload {
  readonly name: string;
  /** Its begin and end, in µs of the clock that `now` reads. */
  readonly from: number;
  readonly to: number;
  /** Processor time of a request in µs, without a profile, which costs time itself. */
  readonly cpuUs: number;
}

/** A profile of V8: the tree of calls, and for each sample the node of the innermost call. Times are in µs. */
interface Profile {
  readonly startTime: number;
  readonly samples: readonly number[];
  /** Time since the sample before. */
  readonly timeDeltas: readonly number[];
  /** Parents stand before their children. */
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
}

const FILE = 'service.cpuprofile';
const IDLE = '(idle)';
const SYSTEM = 'Node, Express and the system';

/** Rows that are no library. V8 has the names in brackets; `(program)` is native code that no JavaScript has called. */
const OTHERS: readonly string[] = [SYSTEM, '(program)', '(garbage collector)'];

/** The command, which then writes a profile into the directory when it ends. */
export function profiled([node, ...words]: Command, directory: string): Command {
  const place = ['--cpu-prof-dir', directory, '--cpu-prof-name', FILE];
  return [node, '--cpu-prof', '--cpu-prof-interval', '250', ...place, ...words];
}

/** The clock of profiles, which is the same for all processes of a machine, in µs. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/**
 * Prints how many µs each library takes of a request: its share of the samples in the directory's profile, times the
 * processor time without a profile. Times of samples are not used: they include what other processes took meanwhile.
 */
export function reportLibraries(directory: string, workloads: readonly ProfiledWorkload[]): void {
  const profile = JSON.parse(readFileSync(join(directory, FILE), 'utf8')) as Profile;
  const owners = ownersOf(profile);
  const counts = workloads.map(() => new Map<string, number>());
  let at = profile.startTime;
  for (const [index, sample] of profile.samples.entries()) {
    at += profile.timeDeltas[index] as number;
    const count = counts[workloads.findIndex(({ from, to }) => from < at && at <= to)];
    const owner = owners.get(sample) as string;
    if (owner !== IDLE) count?.set(owner, (count.get(owner) ?? 0) + 1);
  }
  const libraries = [...new Set(owners.values())].filter((owner) => ![IDLE, ...OTHERS].includes(owner));
  const rows = [...libraries.sort(), ...OTHERS].map((owner) => [
    owner,
    ...workloads.map(({ cpuUs }, index) => {
      const all = [...(counts[index]?.values() ?? [])].reduce((sum, count) => sum + count, 0);
      return ((cpuUs * (counts[index]?.get(owner) ?? 0)) / all).toFixed(1);
    }),
  ]);
  const headings = ['µs a request', ...workloads.map(({ name }) => name)];
  const lines = [headings, headings.map(() => '---'), ...rows];
  process.stdout.write(lines.map((cells) => `| ${cells.join(' | ')} |\n`).join(''));
}

/** For each call, the library that needs it: of the innermost function of a library, or of `src`, on its stack. */
function ownersOf({ nodes }: Profile): Map<number, string> {
  const owners = new Map<number, string>();
  for (const { id, callFrame, children = [] } of nodes) {
    const library = /\/dist\/(libs\/[^/]+|src)\//.exec(callFrame.url)?.[1];
    const special = [IDLE, ...OTHERS].find((name) => name === callFrame.functionName);
    const owner = library ?? special ?? owners.get(id) ?? SYSTEM;
    for (const child of [id, ...children]) owners.set(child, owner);
  }
  return owners;
}

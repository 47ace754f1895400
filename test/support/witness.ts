import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceProcess } from './service-process.js';
import { Load, type LoadRequest, type Outcome, send } from './load.js';

const STATUSES = ['available', 'pending', 'sold'] as const;

/** A pet to create. Its category and status follow from its name, which ends in a number. */
function newPet(name: string): { name: string; categoryId: number; status: string } {
  const index = Number(/\d+$/.exec(name)?.[0]);
  return { name, categoryId: index * 7, status: STATUSES[index % 3] as string };
}

/** The request that creates a pet. */
export function creation(name: string): LoadRequest {
  return { method: 'POST', path: '/v1/pets', body: JSON.stringify(newPet(name)) };
}

/** The name of the pet that a request creates; undefined for other requests. */
function createdName({ request }: Outcome): string | undefined {
  return request.body === undefined ? undefined : (JSON.parse(request.body) as { name: string }).name;
}

/** Messages of responses: the change was certainly not made, or it may have been made. */
export const NOT_DONE =
  /^The ((database is not available|service did not get to the request in time|service has more requests than it can serve)\. Try again|request took too long, .+)\.$/;
export const OUTCOME_UNKNOWN =
  /^The database did not confirm the change in time; it may have been made\. .*Idempotency-Key/;

/** Options of a `Witness`. */
interface WitnessOptions {
  readonly service: ServiceProcess;
  readonly origin: string;
  readonly apiKey: string;
  /** Names of created pets start with this. */
  readonly prefix: string;
  readonly clients?: number;
  /** Time in ms that each client pauses between a response and its next request. */
  readonly pauseMs?: number;
  /** The id of an existing pet. */
  readonly knownId: number;
}

/**
 * Sends requests to every operation and health check while a test causes a fault. Then checks that every response was
 * one that the service promises.
 */
export class Witness {
  private readonly load: Load;
  private readonly live: Load;
  private readonly ready: Load;

  constructor(private readonly options: WitnessOptions) {
    const { origin, apiKey, prefix, knownId, clients = 8, pauseMs = 10 } = options;
    const next = (index: number): LoadRequest => {
      if (index % 4 === 1) return { method: 'GET', path: `/v1/pets?limit=${(index % 20) + 1}` };
      if (index % 4 === 3) return { method: 'GET', path: `/v1/pets/${knownId}` };
      return creation(`${prefix}-${index}`);
    };
    this.load = new Load({ origin, apiKey, clients, next, pauseMs });
    const health = (path: string): Load =>
      new Load({ origin, apiKey, clients: 1, next: () => ({ method: 'GET', path }), pauseMs: 50 });
    this.live = health('/health/live');
    this.ready = health('/health/ready');
  }

  get outcomes(): readonly Outcome[] {
    return this.load.outcomes;
  }

  /**
   * Waits until requests of every kind sent after a moment succeed again, at most 20 s.
   *
   * @returns time in ms from that moment to the start of the last failed request
   */
  async recovery(since: number): Promise<number> {
    for (const deadline = performance.now() + 20_000; ; await sleep(20)) {
      const sent = [...this.load.outcomes, ...this.ready.outcomes].filter(({ startedAt }) => startedAt >= since);
      const failed = sent.filter(({ status }) => status !== 200 && status !== 201);
      const recoveredAt = Math.max(since, ...failed.map(({ startedAt }) => startedAt));
      const good = sent.filter(({ startedAt }) => startedAt > recoveredAt);
      const kinds = new Set(good.map(({ request }) => request.path.split(/[?]/)[0] + request.method));
      // After 1 s of successes, no earlier request can still fail.
      const last = Math.max(...good.map(({ startedAt }) => startedAt));
      if (kinds.size === 4 && good.length >= 40 && last - recoveredAt >= 1_000) return recoveredAt - since;
      if (performance.now() > deadline) {
        const { stdout, stderr } = this.options.service;
        throw new Error(`The service does not recover:\n${sent.at(-1)?.text}\n${stdout.slice(-2000)}${stderr}`);
      }
    }
  }

  /** Stops after the requests in flight. */
  async stop(): Promise<readonly Outcome[]> {
    await Promise.all([this.live.stop(), this.ready.stop()]);
    return this.load.stop();
  }

  /** Throws unless every response was one that the service promises. */
  assertAnswers({ slowestMs }: { slowestMs: number }): void {
    const { service } = this.options;
    for (const outcome of this.load.outcomes) {
      const { status, failure, headers, text, request, durationMs } = outcome;
      const shown = `${request.method} ${request.path}: ${status ?? failure} ${text}, after ${Math.round(durationMs)} ms`;
      if (durationMs > slowestMs) throw new Error(`Too slow: ${shown}`);
      if (status === (request.method === 'POST' ? 201 : 200)) continue;
      const [code, retryAfter] = status === 500 ? ['took_too_long', undefined] : ['unavailable', '1'];
      if (status !== 503 && status !== 500) throw new Error(`Not promised: ${shown}`);
      const [, message = ''] =
        new RegExp(`^\\{"code":"${code}","message":"(.+)","status":${status}\\}$`).exec(text) ?? [];
      const isKnown = NOT_DONE.test(message) || (request.method === 'POST' && OUTCOME_UNKNOWN.test(message));
      if (!isKnown || headers['retry-after'] !== retryAfter) throw new Error(`Not promised: ${shown}`);
    }
    // Readiness, too: a load balancer would take out all instances.
    const checks = [...this.live.outcomes, ...this.ready.outcomes];
    const failed = checks.find(({ status, durationMs }) => status !== 200 || durationMs > slowestMs);
    if (failed !== undefined) {
      throw new Error(`${failed.request.path}: ${failed.status ?? failed.failure} after ${failed.durationMs} ms`);
    }
    if (!service.isRunning) throw new Error(`The service has ended:\n${service.stderr}`);
    const complaints = service.stderr.replace(/^(The Pet Store Service|To make an API key:|Documentation:) .*$/gm, '');
    if (complaints.trim() !== '') throw new Error(`The service complains: ${service.stderr}`);
    if (/"level":(50|60)/.test(service.stdout)) throw new Error(`An error is in the log:\n${service.stdout}`);
  }
}

/** Where a client sends its requests. */
export interface Target {
  readonly origin: string;
  readonly apiKey: string;
}

/** Longest time in ms that a persistent client repeats its last request after it was stopped. */
const LAST_REQUEST_MS = 5_000;

/** A client that adds pets, each under an Idempotency-Key, and repeats each request until it succeeds. */
export class PersistentClient {
  readonly outcomes: Outcome[] = [];
  private stoppedAt: number | undefined;
  private readonly running: Promise<void>;

  /**
   * @param prefix names of created pets start with this
   * @param targetsOf where an attempt to add the next pet goes: if to several targets, at the same moment
   */
  constructor(
    private readonly prefix: string,
    private readonly targetsOf: (pet: number, attempt: number) => readonly Target[],
  ) {
    this.running = this.run();
  }

  /** Stops when the last request has succeeded, but waits for that at most LAST_REQUEST_MS. */
  async stop(): Promise<void> {
    this.stoppedAt = performance.now();
    await this.running;
  }

  private async run(): Promise<void> {
    for (let pet = 0; this.stoppedAt === undefined; pet++) {
      const request = { ...creation(`${this.prefix}-${pet}`), headers: { 'idempotency-key': randomUUID() } };
      for (let attempt = 0, isDone = false; !isDone; attempt++) {
        const outcomes = await Promise.all(this.targetsOf(pet, attempt).map((target) => send(request, target)));
        this.outcomes.push(...outcomes);
        const isLate = performance.now() > (this.stoppedAt ?? Infinity) + LAST_REQUEST_MS;
        isDone = isLate || outcomes.some(({ status }) => status === 201);
        await sleep(20);
      }
    }
  }
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const { stdout } = spawnSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' });
  return Number(stdout) / 1024;
}

/** Compares the pets that clients tried to create with the stored ones. */
interface Balance {
  readonly acknowledged: number;
  /** Not acknowledged, but stored. */
  readonly unacknowledgedButThere: number;
  /** Acknowledged, but not stored, or stored with other values. */
  readonly lost: number;
  /** Stored more than once. */
  readonly doubled: number;
  /** Refused as certainly not made, but stored. */
  readonly deniedButThere: number;
  /** Stored, but never sent like this. */
  readonly strange: number;
}

/** A stored pet. */
export type PetRow = readonly [id: string, name: string, categoryId: string, status: string];

/** Compares the responses to clients with the stored pets. */
export function balance(outcomes: readonly Outcome[], rows: readonly PetRow[]): Balance {
  const found = new Map<string, PetRow[]>();
  for (const row of rows) found.set(row[1], [...(found.get(row[1]) ?? []), row]);
  const creations = outcomes.filter((outcome) => createdName(outcome) !== undefined);
  const names = new Set(creations.map((outcome) => createdName(outcome) as string));
  const of = (outcome: Outcome): PetRow[] => found.get(createdName(outcome) as string) ?? [];
  const isAsSent = ([, name, categoryId, status]: PetRow): boolean => {
    const sent = newPet(name);
    return names.has(name) && categoryId === String(sent.categoryId) && status === sent.status;
  };
  const textOf = ([id, name, categoryId, status]: PetRow): string =>
    `{"id":${id},"name":"${name}","categoryId":${categoryId},"status":"${status}"}`;
  const acknowledged = creations.filter(({ status }) => status === 201);
  const others = creations.filter(({ status }) => status !== 201);
  const messageOf = ({ text }: Outcome): string => (JSON.parse(text) as { message: string }).message;
  const denied = others.filter((outcome) => Number(outcome.status) >= 500 && !OUTCOME_UNKNOWN.test(messageOf(outcome)));
  return {
    acknowledged: acknowledged.length,
    unacknowledgedButThere: others.filter((outcome) => of(outcome).length > 0).length,
    lost: acknowledged.filter((outcome) => !of(outcome).some((row) => outcome.text === textOf(row))).length,
    doubled: [...found.values()].filter((same) => same.length > 1).length,
    deniedButThere: denied.filter((outcome) => of(outcome).length > 0).length,
    strange: rows.filter((row) => !isAsSent(row)).length,
  };
}

/** A balance without faults; the other figures may have any value. */
export const NOTHING_WRONG = { lost: 0, doubled: 0, deniedButThere: 0, strange: 0 };

/** Repeats a request until it succeeds. */
export async function untilItWorks(call: LoadRequest, target: Target, timeoutMs = 20_000): Promise<Outcome> {
  for (const deadline = performance.now() + timeoutMs; ; await sleep(20)) {
    const outcome = await send(call, target);
    const { status, failure, text } = outcome;
    if (status === 200 || status === 201) return outcome;
    if (performance.now() > deadline) throw new Error(`${call.path}: ${status} ${failure} ${text}`);
  }
}

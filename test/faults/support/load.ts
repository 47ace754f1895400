import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** One request of a client. */
export interface LoadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON text. */
  readonly body?: string;
}

/** What became of a request: an answer, or the reason why there is none. */
export interface Outcome {
  readonly request: LoadRequest;
  /** `performance.now()` as it was sent. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** Status of the answer; undefined when there was none. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Whether an earlier request had been answered on the connection: then the service had it. */
  readonly reused: boolean;
  /** Why there was no answer. */
  readonly failure: string | undefined;
}

/** Options of a `Load`. */
export interface LoadOptions {
  readonly origin: string | (() => string);
  readonly apiKey: string;
  /** Clients that call at a time, each on a kept-alive connection of its own. */
  readonly clients: number;
  /** The next request; `index` counts all of them. */
  readonly next: (index: number) => LoadRequest;
  /** Told of each outcome, instead of its being kept in `outcomes`. */
  readonly onOutcome?: (outcome: Outcome) => void;
  /** Time in ms that a client waits for an answer; a request that takes longer fails with `no answer in … ms`. */
  readonly timeoutMs?: number;
  /** Time in ms between the answer to a client and its next request. */
  readonly pauseMs?: number;
}

/** Clients that call a service over and over until they are stopped, and write down what became of every request. */
export class Load {
  readonly outcomes: Outcome[] = [];
  private stopped = false;
  private count = 0;
  private readonly clients: Promise<void>[];

  constructor(private readonly options: LoadOptions) {
    this.clients = Array.from({ length: options.clients }, () => this.call());
  }

  /** Lets every client finish its request. */
  async stop(): Promise<readonly Outcome[]> {
    this.stopped = true;
    await Promise.all(this.clients);
    return this.outcomes;
  }

  private async call(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { next, onOutcome = (outcome) => this.outcomes.push(outcome), pauseMs } = this.options;
    while (!this.stopped) {
      const outcome = await send(next(this.count++), this.options, agent);
      onOutcome(outcome);
      // Nobody answers: as a client would, wait a moment before the next attempt.
      const waitMs = pauseMs ?? (outcome.status === undefined ? 10 : 0);
      if (waitMs > 0) await sleep(waitMs);
    }
    agent.destroy();
  }
}

/** Sends one request. Never throws. */
export function send(
  call: LoadRequest,
  { origin, apiKey, timeoutMs = 30_000 }: Pick<LoadOptions, 'origin' | 'apiKey' | 'timeoutMs'>,
  agent?: Agent,
): Promise<Outcome> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const done = (answer: Partial<Outcome>): void => {
      clearTimeout(timer);
      resolve({
        request: call,
        startedAt,
        durationMs: performance.now() - startedAt,
        status: undefined,
        headers: {},
        text: '',
        reused: outgoing.reusedSocket,
        failure: undefined,
        ...answer,
      });
    };
    const outgoing = request((typeof origin === 'string' ? origin : origin()) + call.path, {
      method: call.method,
      agent: agent ?? false,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(call.body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(call.body)) }),
        ...call.headers,
      },
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    outgoing.on('error', (error: NodeJS.ErrnoException) => done({ failure: error.code ?? error.message }));
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', (error: NodeJS.ErrnoException) => done({ failure: error.code ?? error.message }));
      incoming.on('end', () =>
        done({ status: incoming.statusCode, headers: incoming.headers, text: Buffer.concat(chunks).toString() }),
      );
    });
    outgoing.end(call.body);
  });
}

/** Time in ms that a share of the outcomes stayed below: 0.99 for p99. */
export function percentile(outcomes: readonly Outcome[], share: number): number {
  const durations = outcomes.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  return durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? 0;
}

/** How many outcomes there were of each status, or failure. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, failure } of outcomes) {
    const name = failure ?? String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

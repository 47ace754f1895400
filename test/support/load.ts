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

/** The result of a request: a response, or the reason for none. */
export interface Outcome {
  readonly request: LoadRequest;
  /** `performance.now()` when the request was sent. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** Status of the response; undefined without a response. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Whether the connection had carried an earlier response, so the service had accepted it. */
  readonly reused: boolean;
  /** The reason for no answer. */
  readonly failure: string | undefined;
}

/** Options of a `Load`. */
export interface LoadOptions {
  readonly origin: string | (() => string);
  readonly apiKey: string;
  /** Concurrent clients, each on its own kept-alive connection. */
  readonly clients: number;
  /** Makes the next request; `index` counts the requests of all clients. */
  readonly next: (index: number) => LoadRequest;
  /** Receives each outcome; then `outcomes` stays empty. */
  readonly onOutcome?: (outcome: Outcome) => void;
  /** Longest time in ms that a client waits for a response. Then the request fails with `no response in … ms`. */
  readonly timeoutMs?: number;
  /** Time in ms that each client pauses between a response and its next request. */
  readonly pauseMs?: number;
}

/** Clients that send requests until stopped, and record all outcomes. */
export class Load {
  readonly outcomes: Outcome[] = [];
  private stopped = false;
  private count = 0;
  private readonly clients: Promise<void>[];

  constructor(private readonly options: LoadOptions) {
    this.clients = Array.from({ length: options.clients }, () => this.call());
  }

  /** Stops after the requests in flight. */
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
      // Without a response, pause briefly before the next attempt, as a real client would.
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
    const timer = setTimeout(() => outgoing.destroy(new Error(`no response in ${timeoutMs} ms`)), timeoutMs);
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

/** The duration in ms that this share of the outcomes did not exceed: 0.99 for p99. */
export function percentile(outcomes: readonly Outcome[], share: number): number {
  const durations = outcomes.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  return durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? 0;
}

/** Number of outcomes by status or failure. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, failure } of outcomes) {
    const name = failure ?? String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

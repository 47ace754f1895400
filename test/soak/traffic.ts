import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../src/platform/api-keys/api-key-format.js';
import { type LoadRequest, type Outcome, percentile, send } from '../support/load.js';

/** Number and latencies of the requests since the previous sample. */
export interface Figures {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Options of `Traffic`. */
export interface TrafficOptions {
  readonly origin: string;
  /** Keys with the default scopes; the clients share them. */
  readonly apiKeys: readonly string[];
  /** A key with the scope `metrics:read`. */
  readonly metricsKey: string;
  /** Concurrent clients, each on its own connection. */
  readonly clients: number;
  /** Requests per second of all clients together. */
  readonly requestsPerSecond: number;
  /** The catalogue has animals with the ids 1 to `animals`. */
  readonly animals: number;
}

/** Requests after which a client closes its connection and opens a new one. */
const REQUESTS_PER_CONNECTION = 50;

/** Wrong answers that are kept for display; further ones are only counted. */
const MAX_SHOWN_FAILURES = 10;

const STATUSES = ['available', 'pending', 'sold'];

/** State of a client between its requests. */
interface Memory {
  readonly apiKey: string;
  agent: Agent;
  sent: number;
  /** Path of the next page that the client walks to. */
  nextPage: string | undefined;
  entityTag: string | undefined;
  idempotentRequest: LoadRequest | undefined;
}

/** A kind of request: its relative frequency, the request, and the statuses that are right. */
interface Kind {
  readonly name: string;
  readonly weight: number;
  readonly expected: readonly number[];
  request(memory: Memory, options: TrafficOptions): LoadRequest;
  remember?(memory: Memory, outcome: Outcome): void;
}

const KINDS: readonly Kind[] = [
  {
    name: 'list',
    weight: 24,
    expected: [200],
    request: () => ({ method: 'GET', path: '/v1/pets' }),
    remember: (memory, { headers }) => (memory.entityTag = headers.etag as string),
  },
  {
    name: 'list by status',
    weight: 14,
    expected: [200],
    request: () => ({ method: 'GET', path: `/v1/pets?status=${pick(STATUSES)}&limit=${1 + random(100)}` }),
  },
  {
    name: 'walk by cursor',
    weight: 14,
    expected: [200],
    request: ({ nextPage }) => ({ method: 'GET', path: nextPage ?? `/v1/pets?status=${pick(STATUSES)}&limit=50` }),
    remember: (memory, { headers }) =>
      (memory.nextPage = /<http:\/\/[^/]+([^>]+)>; rel="next"/.exec(String(headers.link))?.[1]),
  },
  {
    name: 'list if it has changed',
    weight: 8,
    expected: [200, 304],
    request: ({ entityTag }) => ({ method: 'GET', path: '/v1/pets', headers: { 'if-none-match': entityTag ?? '"x"' } }),
  },
  {
    name: 'get',
    weight: 14,
    expected: [200],
    request: (_, { animals }) => ({ method: 'GET', path: `/v1/pets/${1 + random(animals)}` }),
  },
  { name: 'create', weight: 6, expected: [201], request: create },
  {
    name: 'create with Idempotency-Key',
    weight: 4,
    expected: [201],
    request: (memory) => (memory.idempotentRequest = { ...create(), headers: { 'idempotency-key': randomUUID() } }),
  },
  {
    name: 'the same create again',
    weight: 2,
    expected: [201],
    request: (memory) => memory.idempotentRequest ?? create(),
  },
  {
    name: 'a limit out of range',
    weight: 1,
    expected: [400],
    request: () => ({ method: 'GET', path: '/v1/pets?limit=0' }),
  },
  {
    name: 'a body that is no JSON',
    weight: 1,
    expected: [400],
    request: () => ({ method: 'POST', path: '/v1/pets', body: '{"name":' }),
  },
  {
    name: 'an animal without a name',
    weight: 1,
    expected: [400],
    request: () => ({ method: 'POST', path: '/v1/pets', body: '{"categoryId":7}' }),
  },
  {
    name: 'no key',
    weight: 1,
    expected: [401],
    request: () => ({ method: 'GET', path: '/v1/pets', headers: { authorization: '' } }),
  },
  { name: 'an unknown key', weight: 3, expected: [401], request: unknownKey },
  {
    name: 'an unknown animal',
    weight: 2,
    expected: [404],
    request: () => ({ method: 'GET', path: `/v1/pets/${2n ** 62n + BigInt(random(1_000_000))}` }),
  },
  {
    name: 'an unknown path',
    weight: 1,
    expected: [404],
    request: () => ({ method: 'GET', path: `/v1/toys/${random(1_000_000)}` }),
  },
  {
    name: 'a page, or the document',
    weight: 1,
    expected: [200],
    request: () => ({ method: 'GET', path: pick(['/docs', '/docs/errors', '/openapi.json', '/openapi.yaml']) }),
  },
  {
    name: 'health',
    weight: 1,
    expected: [200],
    request: () => ({ method: 'GET', path: pick(['/health/live', '/health/ready']) }),
  },
  {
    name: 'metrics',
    weight: 1,
    expected: [200],
    request: (_, { metricsKey }) => ({
      method: 'GET',
      path: '/metrics',
      headers: { authorization: `Bearer ${metricsKey}` },
    }),
  },
];
const ALL_WEIGHTS = KINDS.reduce((sum, { weight }) => sum + weight, 0);

/**
 * Clients that send all kinds of requests at an even rate until `stop`. From time to time each breaks its connection in
 * the middle of a request. `failures` has the answers of unexpected status.
 */
export class Traffic {
  requests = 0;
  /** Number of wrong answers. */
  failed = 0;
  /** The first wrong answers, for display. */
  readonly failures: string[] = [];
  readonly byKind = new Map<string, number>();
  private outcomes: Outcome[] = [];
  private isStopped = false;
  private resting: Promise<void> | undefined;
  private endRest: () => void = () => undefined;
  private readonly inFlight = new Set<Promise<void>>();
  private readonly clients: Promise<void>[];

  constructor(private readonly options: TrafficOptions) {
    this.clients = Array.from({ length: options.clients }, (_, index) => this.call(index));
  }

  /** Waits for the requests in flight, and sends no more until `resume`. */
  async rest(): Promise<void> {
    this.resting = new Promise((resolve) => (this.endRest = resolve));
    await Promise.all(this.inFlight);
  }

  resume(): void {
    this.resting = undefined;
    this.endRest();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    this.resume();
    await Promise.all(this.clients);
  }

  /** The figures since the previous call. */
  takeFigures(): Figures {
    const { outcomes } = this;
    this.outcomes = [];
    return { requests: outcomes.length, p50Ms: percentile(outcomes, 0.5), p99Ms: percentile(outcomes, 0.99) };
  }

  private async call(index: number): Promise<void> {
    const { apiKeys, clients, requestsPerSecond } = this.options;
    const memory: Memory = {
      apiKey: apiKeys[index % apiKeys.length] as string,
      agent: newAgent(),
      sent: 0,
      nextPage: undefined,
      entityTag: undefined,
      idempotentRequest: undefined,
    };
    const intervalMs = (1000 * clients) / requestsPerSecond;
    let dueAt = performance.now() + (intervalMs * index) / clients;
    for (;;) {
      const wait = dueAt - performance.now();
      if (wait > 0) await sleep(wait);
      while (this.resting) await this.resting;
      if (this.isStopped) break;
      // A late client does not catch up.
      dueAt = Math.max(performance.now(), dueAt + intervalMs);
      const request = this.send(memory);
      this.inFlight.add(request);
      await request;
      this.inFlight.delete(request);
    }
    memory.agent.destroy();
  }

  private async send(memory: Memory): Promise<void> {
    this.requests++;
    memory.sent++;
    if (memory.sent % REQUESTS_PER_CONNECTION === 0) {
      memory.agent.destroy();
      memory.agent = newAgent();
      await hangUp(this.options.origin, memory);
      return;
    }
    const kind = pickKind();
    const outcome = await send(
      kind.request(memory, this.options),
      { origin: this.options.origin, apiKey: memory.apiKey },
      memory.agent,
    );
    this.byKind.set(kind.name, (this.byKind.get(kind.name) ?? 0) + 1);
    this.outcomes.push(outcome);
    if (outcome.status !== undefined && kind.expected.includes(outcome.status)) {
      kind.remember?.(memory, outcome);
    } else {
      this.failed++;
      if (this.failures.length < MAX_SHOWN_FAILURES) {
        this.failures.push(`${kind.name}: ${outcome.failure ?? `${outcome.status} ${outcome.text}`}`);
      }
    }
  }
}

/**
 * Sends `count` different unknown keys. They fill the service's cache of unknown keys before the soak, so that its growth
 * does not look like a leak.
 */
export async function fillWithUnknownKeys(origin: string, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  for (let sent = 0; sent < count; sent += 500) {
    await Promise.all(
      Array.from({ length: Math.min(500, count - sent) }, () => send(unknownKey(), { origin, apiKey: '' }, agent)),
    );
  }
  agent.destroy();
}

function unknownKey(): LoadRequest {
  return { method: 'GET', path: '/v1/pets?limit=1', headers: { authorization: `Bearer ${createApiKey()}` } };
}

function create(): LoadRequest {
  const animal = { name: `Animal ${random(1_000_000)}`, categoryId: random(1_000), status: pick(STATUSES) };
  return { method: 'POST', path: '/v1/pets', body: JSON.stringify(animal) };
}

/** Breaks a connection in the middle of a request: alternately in the header section and in the body. */
function hangUp(origin: string, { apiKey, sent }: Memory): Promise<void> {
  const { hostname, port } = new URL(origin);
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\nContent-Type: application/json\r\n`;
  const isInBody = (sent / REQUESTS_PER_CONNECTION) % 2 === 0;
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(isInBody ? `${head}Content-Length: 100\r\n\r\n{"name":` : head, () => socket.destroy());
    });
    socket.on('error', () => undefined).on('close', () => resolve());
  });
}

function newAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}

function pickKind(): Kind {
  let rest = Math.random() * ALL_WEIGHTS;
  return KINDS.find(({ weight }) => (rest -= weight) < 0) ?? (KINDS[0] as Kind);
}

function pick<Value>(values: readonly Value[]): Value {
  return values[random(values.length)] as Value;
}

function random(limit: number): number {
  return Math.floor(Math.random() * limit);
}

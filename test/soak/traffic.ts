import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { createApiKey } from '../../libs/access/src/api-key-format.js';
import '../../src/app.description.js';
import type { LoadRequest, Outcome } from '../support/load.js';

/** Wrong responses that are kept for display; further ones are only counted. */
const MAX_SHOWN_FAILURES = 10;

const STATUSES = ['available', 'pending', 'sold'];

/** A kind of request: its relative frequency, the right statuses, and the request itself. */
type Kind = readonly [name: string, weight: number, expected: readonly number[], request: () => LoadRequest];

/** All kinds of requests, at random. `failures` has the first responses of unexpected status. */
export class Traffic {
  /** Number of wrong responses. */
  failed = 0;
  readonly failures: string[] = [];
  private nextPage: string | undefined;
  private entityTag = '"x"';
  private idempotentRequest = createOnce();
  private readonly kinds: readonly Kind[] = [
    ['list', 24, [200], () => get('/v1/pets')],
    ['list by status', 14, [200], () => get(`/v1/pets?status=${pick(STATUSES)}&limit=${1 + random(100)}`)],
    ['walk by cursor', 14, [200], () => get(this.nextPage ?? `/v1/pets?status=${pick(STATUSES)}&limit=50`)],
    ['list if it has changed', 8, [200, 304], () => get('/v1/pets', { 'if-none-match': this.entityTag })],
    ['get', 14, [200], () => get(`/v1/pets/${1 + random(this.pets)}`)],
    ['create', 6, [201], create],
    ['create with Idempotency-Key', 4, [201], createOnce],
    ['the same create again', 2, [201], () => ({ ...this.idempotentRequest })],
    ['a limit out of range', 1, [400], () => get('/v1/pets?limit=0')],
    ['a body that is no JSON', 1, [400], () => ({ method: 'POST', path: '/v1/pets', body: '{"name":' })],
    ['a pet without a name', 1, [400], () => ({ method: 'POST', path: '/v1/pets', body: '{"categoryId":7}' })],
    ['no key', 1, [401], () => get('/v1/pets', { authorization: '' })],
    ['an unknown key', 3, [401], () => get('/v1/pets', { authorization: `Bearer ${createApiKey('pets_')}` })],
    ['an unknown pet', 2, [404], () => get(`/v1/pets/${2n ** 62n + BigInt(random(1_000_000))}`)],
    ['an unknown path', 1, [404], () => get(`/v1/toys/${random(1_000_000)}`)],
    ['a page', 1, [200], () => get(pick(['/docs', '/docs/deprecations', '/openapi.json', '/openapi.yaml']))],
    ['health', 1, [200], () => get(pick(['/health/live', '/health/ready']))],
    ['metrics', 1, [200], () => get('/metrics', { authorization: `Bearer ${this.metricsKey}` })],
  ];
  private readonly sent = new WeakMap<LoadRequest, Kind>();

  /**
   * @param pets the catalogue has pets with the ids 1 to `pets`
   * @param metricsKey a key with the scope `metrics:read`
   */
  constructor(
    private readonly pets: number,
    private readonly metricsKey: string,
  ) {}

  next(): LoadRequest {
    let rest = random(this.kinds.reduce((sum, [, weight]) => sum + weight, 0));
    const kind = this.kinds.find(([, weight]) => (rest -= weight) < 0) as Kind;
    const request = kind[3]();
    this.sent.set(request, kind);
    return request;
  }

  /** Checks the status of a response, and remembers what later requests need. */
  take({ request, status, headers, text, failure }: Outcome): void {
    const [name, , expected] = this.sent.get(request) as Kind;
    if (status === undefined || !expected.includes(status)) {
      this.failed++;
      if (this.failures.length < MAX_SHOWN_FAILURES) this.failures.push(`${name}: ${failure ?? `${status} ${text}`}`);
    }
    if (name === 'create with Idempotency-Key') this.idempotentRequest = request;
    if (name === 'list') this.entityTag = String(headers['etag']);
    if (name === 'walk by cursor') {
      this.nextPage = /<http:\/\/[^/]+([^>]+)>; rel="next"/.exec(String(headers['link']))?.[1];
    }
  }
}

function get(path: string, headers: Record<string, string> = {}): LoadRequest {
  return { method: 'GET', path, headers };
}

function create(): LoadRequest {
  const pet = { name: `Pet ${random(1_000_000)}`, categoryId: random(1_000), status: pick(STATUSES) };
  return { method: 'POST', path: '/v1/pets', body: JSON.stringify(pet) };
}

function createOnce(): LoadRequest {
  return { ...create(), headers: { 'idempotency-key': randomUUID() } };
}

/** Breaks a connection in the middle of a request. */
export function hangUp(origin: string, apiKey: string, isInBody: boolean): Promise<void> {
  const { hostname, port } = new URL(origin);
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\nContent-Type: application/json\r\n`;
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(isInBody ? `${head}Content-Length: 100\r\n\r\n{"name":` : head, () => socket.destroy());
    });
    socket.on('error', () => undefined).on('close', () => resolve());
  });
}

function pick(values: readonly string[]): string {
  return values[random(values.length)] as string;
}

function random(limit: number): number {
  return Math.floor(Math.random() * limit);
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A span as the collector has received it. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** 2 is SERVER, 3 is CLIENT. */
  readonly kind: number;
  /** 0 is unset, 2 is an error. */
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
}

export const SERVER = 2;
export const CLIENT = 3;

/** An OpenTelemetry collector that records the exports it receives (OTLP/HTTP in JSON). */
export class OtlpCollector {
  readonly spans: ReceivedSpan[] = [];
  /** How the collector responds to exports. */
  mode: 'take' | 'hang' | 'refuse' = 'take';
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => void this.receive(request, response));
  }

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    collector.server.listen(0, '127.0.0.1');
    await once(collector.server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Settings of a service that sends its spans here after a short delay. */
  get settings(): Record<string, string> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    };
  }

  /** Waits at most 10 s for `count` spans that match, and returns them. */
  async find(matches: (span: ReceivedSpan) => boolean, count = 1): Promise<ReceivedSpan[]> {
    for (let waited = 0; waited < 10_000; waited += 20) {
      const found = this.spans.filter(matches);
      if (found.length >= count) return found;
      await sleep(20);
    }
    const found = this.spans.filter(matches).length;
    throw new Error(`Received ${found} of ${count} spans. All: ${JSON.stringify(this.spans)}`);
  }

  /** The server span of a request, by its `X-Request-Id`. */
  async request(requestId: unknown): Promise<ReceivedSpan> {
    const [span] = await this.find(({ attributes }) => attributes['petstore.request_id'] === requestId);
    return span as ReceivedSpan;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray());
    if (this.mode === 'hang') return;
    if (this.mode === 'refuse') {
      response.writeHead(400).end('no');
      return;
    }
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    this.keep(JSON.parse(body.toString()) as Traces);
  }

  private keep({ resourceSpans }: Traces): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({
          ...span,
          status: { ...span.status, code: span.status?.code ?? 0 },
          attributes: plain(span.attributes),
          resource: plain(resource.attributes),
        });
      }
    }
  }
}

type Attribute = { readonly key: string; readonly value: object };

/** The body of an export. */
interface Traces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes' | 'status' | 'resource'> & {
        readonly attributes: readonly Attribute[];
        readonly status?: { readonly code?: number; readonly message?: string };
      })[];
    }[];
  }[];
}

function plain(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] as unknown]));
}

import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { readOwnJson, writeJson } from '#json';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON, integers beyond 2^53 as bigint. */
  readonly json: any;
}

export interface HttpCall {
  headers?: Record<string, string | string[] | undefined>;
  /** A string or bytes are sent as they are; anything else as JSON. */
  body?: unknown;
  /** The API key; null for none. */
  apiKey?: string | null;
  /** The test expects a response 500, so its cause is not printed. */
  expects500?: boolean;
}

/** Sends HTTP requests to a tested application and returns whole answers. */
export class HttpClient {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 50 });

  /** @param onServerError gets the method and path of a request that got 500, and the response */
  constructor(
    private readonly origin: string,
    private readonly apiKey?: string,
    private readonly onServerError?: (request: string, answer: HttpAnswer) => void,
  ) {}

  get(path: string, call?: HttpCall): Promise<HttpAnswer> {
    return this.send('GET', path, call);
  }

  post(path: string, body: unknown, call?: HttpCall): Promise<HttpAnswer> {
    return this.send('POST', path, { ...call, body });
  }

  async send(method: string, path: string, call: HttpCall = {}): Promise<HttpAnswer> {
    const answer = await this.request(method, path, call);
    if (answer.status === 500 && !call.expects500) this.onServerError?.(`${method} ${path}`, answer);
    return answer;
  }

  private request(
    method: string,
    path: string,
    { headers = {}, body, apiKey = this.apiKey ?? null }: HttpCall,
  ): Promise<HttpAnswer> {
    const bytes =
      body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : writeJson(body);
    const fields: Record<string, string | string[] | undefined> = {
      ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(bytes === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(bytes)) }),
      ...headers,
    };
    const sent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >;
    return new Promise((resolve, reject) => {
      const outgoing = request(this.origin + path, { method, headers: sent, agent: this.agent }, (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => resolve(toAnswer(incoming.statusCode ?? 0, incoming.headers, Buffer.concat(chunks))));
      });
      outgoing.on('error', reject);
      outgoing.end(bytes);
    });
  }
}

function toAnswer(status: number, headers: IncomingHttpHeaders, bytes: Buffer): HttpAnswer {
  const isJson = headers['content-type'] === 'application/json' && bytes.length > 0;
  const text = bytes.toString();
  return { status, headers, text, json: isJson ? readOwnJson(text) : undefined };
}

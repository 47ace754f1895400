import { PetStoreError, reasonOf } from './errors.js';
import type { operations } from './generated/api.js';
import { parseRetryAfter } from './header-fields.js';
import { fromJson } from './json.js';
import { isRetryable, retryDelay } from './retries.js';

/** Statuses whose responses have no body (RFC 9110). */
const BODILESS: readonly number[] = [204, 205, 304];

/** The operations of the API, by their operationIds. */
export type OperationId = keyof operations;

/** How requests are sent. */
export interface TransportOptions {
  readonly apiKey: string;
  /** Instead of the global `fetch`, which is looked up for each request, so that tests can replace it. */
  readonly fetch: typeof fetch | undefined;
  readonly attemptTimeoutMs: number;
  readonly maxAttempts: number;
  readonly maxTotalMs: number;
}

/** One call of an operation. It may take several requests, which are all the same. */
export interface Call {
  readonly operation: OperationId;
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The statuses that are a success. */
  readonly expected: readonly number[];
  /** Whether the body of a success has the shape of this operation's responses. */
  readonly isBody: (body: unknown) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A response with an expected status. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly requestId: string;
  /** The JSON body; undefined with a status of BODILESS. */
  readonly body: unknown;
}

/** Sends requests, retries those that may succeed later, and turns every failure into a {@link PetStoreError}. */
export class Transport {
  /** Whether a response could be read: a browser then allows this page to read the others, too. */
  private hasAnswered = false;

  /** Private at run time, too: consoles and JSON would show the API key. */
  readonly #options: TransportOptions;

  /** @param onAnswer called with the header fields of every response, errors included */
  constructor(
    options: TransportOptions,
    private readonly onAnswer: (call: Call, headers: Headers) => void,
  ) {
    this.#options = options;
  }

  /** @throws PetStoreError of the last attempt */
  async send(call: Call): Promise<Answer> {
    const { apiKey, maxAttempts, maxTotalMs } = this.#options;
    const deadline = performance.now() + maxTotalMs;
    const callId = randomId();
    const headers = new Headers({ ...call.headers, authorization: `Bearer ${apiKey}` });
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.attempt(call, headers, `${callId}-${attempt}`, deadline - performance.now());
      if (!(outcome instanceof PetStoreError)) return outcome;
      const delayMs = retryDelay(attempt, outcome.retryAfterMs);
      const isLast = attempt >= maxAttempts || performance.now() + delayMs >= deadline || !isRetryable(outcome);
      // A connection may break once, so one failure alone does not mean that the origin is refused.
      if ((attempt > 1 || isLast) && outcome.code === 'network_error') {
        await this.refuseForeignOrigin(call, outcome, deadline - performance.now());
      }
      if (isLast) throw outcome;
      await this.pause(delayMs, call, outcome);
    }
  }

  private async attempt(
    call: Call,
    headers: Headers,
    requestId: string,
    remainingMs: number,
  ): Promise<Answer | PetStoreError> {
    if (call.signal?.aborted) return aborted(call.signal, requestId);
    const timeoutMs = Math.min(this.#options.attemptTimeoutMs, remainingMs);
    headers.set('x-request-id', requestId);
    const limit = new TimeLimit(timeoutMs, call.signal);
    let response: Response;
    let text: string;
    try {
      const sent = this.fetch(call.url, {
        method: call.method,
        headers,
        body: call.body ?? null,
        signal: limit.signal,
        // A redirect could lead the API key elsewhere.
        redirect: 'manual',
      });
      response = await limit.of(sent);
      if (!isResponse(response)) {
        const message = 'The option fetch must return a promise of a Response.';
        return new PetStoreError({ code: 'unexpected_response', message, requestId });
      }
      text = await limit.of(response.text());
    } catch (cause) {
      if (call.signal?.aborted) return aborted(call.signal, requestId);
      if (limit.isOver) {
        const message = `No complete response came from ${call.url.origin} in ${Math.round(timeoutMs)} ms.`;
        return new PetStoreError({ code: 'timeout', message, requestId, cause });
      }
      const message = `No complete response came from ${call.url.origin}: ${reasonOf(cause)}.`;
      return new PetStoreError({ code: 'network_error', message, requestId, cause });
    } finally {
      limit.end();
    }
    this.hasAnswered = true;
    this.onAnswer(call, response.headers);
    return toOutcome(call, response, text, response.headers.get('x-request-id') ?? requestId);
  }

  /** Rejects also where the `fetch` of the caller throws. */
  private async fetch(...parameters: Parameters<typeof fetch>): Promise<Response> {
    // Browsers refuse `fetch` when it is called as a method of another object.
    const { fetch = globalThis.fetch } = this.#options;
    return fetch(...parameters);
  }

  /**
   * To a page of another origin, a browser reports a refusal by CORS as a broken connection. It is a refusal if the
   * service answers a request without CORS, whose response the page cannot read. That request has no API key.
   *
   * @throws PetStoreError `origin_not_allowed`, or `aborted`
   */
  private async refuseForeignOrigin({ url, signal }: Call, failure: PetStoreError, remainingMs: number): Promise<void> {
    const page = (globalThis as { location?: { origin?: string } }).location?.origin;
    if (page === undefined || page === url.origin || this.hasAnswered) return;
    const limit = new TimeLimit(Math.min(this.#options.attemptTimeoutMs, remainingMs), signal);
    const { cause, requestId } = failure;
    try {
      const options = { mode: 'no-cors', credentials: 'omit', cache: 'no-store', signal: limit.signal } as const;
      await limit.of(this.fetch(new URL('.', url), options));
    } catch {
      if (signal?.aborted) throw aborted(signal, requestId);
      return;
    } finally {
      limit.end();
    }
    const message =
      `${url.origin} answers, but the browser does not let pages of ${page} read its responses (CORS). ` +
      `If baseUrl is right, the service must name ${page} in its setting CORS_ORIGINS, or a proxy in between fails without CORS.`;
    throw new PetStoreError({ code: 'origin_not_allowed', message, requestId, cause });
  }

  /** Waits before another attempt; the caller's signal ends the wait. */
  private pause(delayMs: number, { signal }: Call, { requestId }: PetStoreError): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(aborted(signal as AbortSignal, requestId));
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, delayMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (signal?.aborted) onAbort();
    });
  }
}

/** A signal that aborts at the end of the time limit or with the caller's signal. Call `end` when it is no longer needed. */
class TimeLimit {
  isOver = false;
  private readonly controller = new AbortController();
  private readonly ended = new Promise<never>((_resolve, reject) => {
    this.signal.addEventListener('abort', () => reject(this.signal.reason));
  });
  private readonly timer: ReturnType<typeof setTimeout>;
  private readonly onAbort = (): void => this.controller.abort(this.caller?.reason);

  constructor(
    ms: number,
    private readonly caller: AbortSignal | undefined,
  ) {
    this.timer = setTimeout(() => {
      this.isOver = true;
      this.controller.abort();
    }, ms);
    caller?.addEventListener('abort', this.onAbort, { once: true });
    if (caller?.aborted) this.onAbort();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Waits for a promise, at most until the end: a `fetch` of the caller may not heed the signal. */
  async of<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.ended]);
  }

  end(): void {
    clearTimeout(this.timer);
    this.caller?.removeEventListener('abort', this.onAbort);
  }
}

/** Not `instanceof`: a `fetch` of the caller may have a class of its own. */
function isResponse(value: unknown): value is Response {
  const { status, headers, text } = Object(value) as Partial<Response>;
  return typeof status === 'number' && typeof headers?.get === 'function' && typeof text === 'function';
}

function toOutcome(
  { expected, isBody }: Call,
  response: Response,
  text: string,
  requestId: string,
): Answer | PetStoreError {
  const { status, headers } = response;
  const isExpected = expected.includes(status);
  if (isExpected && BODILESS.includes(status)) return { status, headers, requestId, body: undefined };
  const body = tryToReadJson(text);
  if (isExpected && isBody(body)) return { status, headers, requestId, body };

  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), Date.now());
  if (isErrorBody(body, status)) {
    return new PetStoreError({ code: body.code, message: body.message, status, requestId, retryAfterMs });
  }
  // A browser hides the status of a redirect.
  const isRedirect = response.type === 'opaqueredirect' || (status >= 300 && status < 400);
  const what = isRedirect ? 'a redirect' : `status ${status} with ${headers.get('content-type') ?? 'no content type'}`;
  return new PetStoreError({
    code: 'unexpected_response',
    message: `The response is not from the Pet Store Service: ${what}. Check baseUrl and any proxy in between.`,
    status: status === 0 ? undefined : status,
    requestId,
    retryAfterMs,
  });
}

function tryToReadJson(text: string): unknown {
  try {
    return fromJson(text);
  } catch {
    return undefined;
  }
}

function isErrorBody(body: unknown, status: number): body is { code: string; message: string } {
  if (typeof body !== 'object' || body === null) return false;
  const error = body as Record<string, unknown>;
  return typeof error['code'] === 'string' && typeof error['message'] === 'string' && error['status'] === status;
}

function aborted(signal: AbortSignal, requestId: string | undefined): PetStoreError {
  return new PetStoreError({ code: 'aborted', message: 'The call was aborted.', requestId, cause: signal.reason });
}

/** 128 random bits in hexadecimal. Unlike `crypto.randomUUID`, this also works on http pages. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

import type { Request, Response } from 'express';
import type { Readable } from 'node:stream';
import { serviceUnavailable } from '../../errors/service-unavailable.js';

/** Time in ms that a stream which begins during the shutdown has to send its header section. */
const LATE_START_MS = 20;

const streamsOf = new WeakMap<object, EventStreams>();

/**
 * The open event streams (`@Sse()`) of this process, at most MAX_EVENT_STREAMS. Clients keep them open as long as they
 * want, so they do not count towards MAX_REQUESTS_IN_FLIGHT. When the server stops listening, they end: the client gets
 * the end of the answer, the connection closes, and Nest unsubscribes from the handler's observable.
 */
export class EventStreams {
  /** For each response, the stream that Nest pipes into it; undefined until the handler has returned its observable. */
  private readonly open = new Map<Response, Readable | undefined>();
  private hasEnded = false;

  /**
   * @param app the Express application whose requests these are
   * @param writeTimeoutMs WRITE_TIMEOUT_MS
   */
  constructor(
    app: object,
    private readonly limit: number,
    private readonly writeTimeoutMs: number,
  ) {
    streamsOf.set(app, this);
  }

  /** The streams of the server that has received a request; undefined for a server of another kind. */
  static of(request: Request): EventStreams | undefined {
    return streamsOf.get(request.app);
  }

  /**
   * Adds the stream that answers a request, until the answer is over.
   *
   * @throws ApiError 503 when MAX_EVENT_STREAMS are open
   */
  add(response: Response): void {
    if (this.open.size >= this.limit) throw serviceUnavailable('event_streams');
    this.open.set(response, undefined);
    response.once('close', () => this.open.delete(response));
    response.once('pipe', (events: Readable) => {
      this.open.set(response, events);
      // Nest switches the socket's time-out off. It must stay on, because it cuts clients that do not read.
      response.socket?.setTimeout(this.writeTimeoutMs);
      if (this.hasEnded) setTimeout(() => end(response, events), LATE_START_MS);
    });
  }

  /** Ends all streams; later ones end as soon as they have begun. */
  end(): void {
    this.hasEnded = true;
    for (const [response, events] of this.open) {
      if (events !== undefined) end(response, events);
    }
  }
}

function end(response: Response, events: Readable): void {
  if (response.writableEnded) return;
  const { socket } = response;
  // Writing an event after the end of the answer would be an error.
  events.unpipe(response);
  // Nest unsubscribes when the connection closes.
  response.end(() => socket?.destroySoon());
}

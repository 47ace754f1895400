import type { Response } from 'express';
import type { RequestsInFlight } from '../requests/requests-in-flight.js';
import { MAX_DELAYED, PROMPT_REFUSALS, REFUSAL_PAUSE_MS } from '../requests/server-limits.js';

/**
 * Delays refusals of clients that do not stop. Of those within a second, the first PROMPT_REFUSALS are sent at once, and each
 * further one REFUSAL_PAUSE_MS later, unless MAX_DELAYED wait already. The response waits, not the connection behind it: a proxy
 * sends no request of another client on a connection whose response is outstanding.
 */
export class Delays {
  private readonly waiting = new Set<() => void>();
  private since = -Infinity;
  private count = 0;
  private isOver = false;

  constructor(private readonly inFlight: RequestsInFlight) {}

  /** Calls `send` when the refusal may be sent, or its client has left. A request whose refusal waits is not in flight. */
  delay(response: Response, send: () => void): void {
    const now = performance.now();
    if (now - this.since >= 1_000) {
      this.since = now;
      this.count = 0;
    }
    if (++this.count <= PROMPT_REFUSALS || this.waiting.size >= MAX_DELAYED || this.isOver) {
      send();
      return;
    }
    this.inFlight.release(response.req.context);
    const end = (): void => {
      clearTimeout(timer);
      response.off('close', end);
      this.waiting.delete(end);
      send();
    };
    const timer = setTimeout(end, REFUSAL_PAUSE_MS);
    response.once('close', end);
    this.waiting.add(end);
  }

  /** Must be called when the server begins to drain: no refusal waits any more. */
  end(): void {
    this.isOver = true;
    for (const end of this.waiting) end();
  }
}

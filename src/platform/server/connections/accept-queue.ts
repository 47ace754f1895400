import type { Server } from 'node:http';

/** With fewer open connections, a turn of the event loop is short, and no connection waits long to be accepted. */
export const MANY_CONNECTIONS = 100;

/** The queue counts as empty after this time in ms without a new connection. */
const QUIET_MS = 1;

/** Longest time in ms that requests wait while connections are accepted, counted from the end of the first turn. */
export const MAX_DRAINING_MS = 10;

/**
 * The connections that wait in the operating system to be accepted. libuv accepts one in a turn of the event loop, and
 * with thousands of busy connections a turn takes a tenth of a second: a new client, or a health check, would wait for
 * minutes. So among many connections, admitted requests wait while others are being accepted. MAX_REQUESTS_IN_FLIGHT
 * bounds how many wait.
 */
export class AcceptQueue {
  private postponed: (() => void)[] = [];
  private isDraining = false;
  private hasAccepted = false;
  /** When draining ends at the latest, in ms of `performance.now()`; undefined in the first turn. */
  private endsAt: number | undefined;

  constructor(
    server: Server,
    private readonly connections: { readonly size: number },
  ) {
    server.on('connection', () => this.accepted());
  }

  /** Calls `serve` at once, or when the waiting connections have been accepted. Keeps the order of the calls. */
  whenDrained(serve: () => void): void {
    if (this.isDraining) this.postponed.push(serve);
    else serve();
  }

  private accepted(): void {
    this.hasAccepted = true;
    if (this.isDraining || this.connections.size < MANY_CONNECTIONS) return;
    this.isDraining = true;
    setTimeout(this.check, QUIET_MS);
  }

  private readonly check = (): void => {
    const now = performance.now();
    this.endsAt ??= now + MAX_DRAINING_MS;
    if (this.hasAccepted && now < this.endsAt) {
      this.hasAccepted = false;
      setTimeout(this.check, QUIET_MS);
      return;
    }
    const { postponed } = this;
    this.postponed = [];
    this.isDraining = false;
    this.endsAt = undefined;
    for (const serve of postponed) serve();
  };
}

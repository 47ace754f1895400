import type { Server } from 'node:http';

/** With fewer open connections, a turn of the event loop is short, and no connection waits long to be accepted. */
export const MANY_CONNECTIONS = 100;

/** Most connections that are accepted while requests wait. Accepting so many takes some 30 ms. */
export const MAX_ACCEPTED_FIRST = 500;

/**
 * The connections that wait in the operating system to be accepted. libuv accepts one in a turn of the event loop, and
 * with thousands of busy connections a turn takes a tenth of a second: a new client, or a health check, would wait for
 * minutes. So among many connections, admitted requests wait while each turn accepts a connection. MAX_REQUESTS_IN_FLIGHT
 * bounds how many wait.
 */
export class AcceptQueue {
  private postponed: (() => void)[] = [];
  private isDraining = false;
  /** Connections that were accepted since draining began. */
  private accepted = 0;
  /** The value of `accepted` at the start of this turn. */
  private acceptedBefore = 0;

  constructor(
    server: Server,
    private readonly connections: { readonly size: number },
  ) {
    server.on('connection', () => this.accept());
  }

  /** Calls `serve` at once, or when the waiting connections have been accepted. Keeps the order of the calls. */
  whenDrained(serve: () => void): void {
    if (this.isDraining) this.postponed.push(serve);
    else serve();
  }

  private accept(): void {
    if (this.isDraining) {
      this.accepted++;
    } else if (this.connections.size >= MANY_CONNECTIONS) {
      this.isDraining = true;
      this.accepted = 1;
      this.acceptedBefore = 0;
      setImmediate(this.endTurn);
    }
  }

  private readonly endTurn = (): void => {
    if (this.accepted > this.acceptedBefore && this.accepted < MAX_ACCEPTED_FIRST) {
      this.acceptedBefore = this.accepted;
      setImmediate(this.endTurn);
      return;
    }
    const { postponed } = this;
    this.postponed = [];
    this.isDraining = false;
    for (const serve of postponed) serve();
  };
}

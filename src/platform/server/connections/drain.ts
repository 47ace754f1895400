import { Logger } from '@nestjs/common';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connections } from './connections.js';

/** Settings of the shutdown, in ms. */
interface ShutdownTimes {
  readonly shutdownDelayMs: number;
  readonly shutdownLingerMs: number;
  readonly shutdownTimeoutMs: number;
}

/**
 * The graceful shutdown of the HTTP server. `start-service.ts` begins it on SIGTERM or SIGINT, by Nest's `app.close()`.
 *
 * 1. `begin`: `/health/ready` answers 503, and each answer closes its connection.
 * 2. For SHUTDOWN_DELAY_MS the server still accepts connections, until load balancers have seen the 503.
 * 3. The server stops listening, and event streams end. Idle connections stay open until SHUTDOWN_LINGER_MS after
 *    `begin`, because a client may be sending a request at this moment.
 * 4. Requests in flight finish. After SHUTDOWN_TIMEOUT_MS, counted from the end of the delay, the rest is cut.
 */
export class Drain {
  private readonly log = new Logger(Drain.name);
  private startedAt = 0;
  hasBegun = false;

  constructor(
    private readonly server: Server,
    private readonly connections: Connections,
    private readonly eventStreams: { end(): void },
    private readonly config: ShutdownTimes,
  ) {}

  begin(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.startedAt = performance.now();
  }

  /** Runs steps 2 to 4. Resolves when no connection is open. */
  async finish(): Promise<void> {
    const { shutdownDelayMs, shutdownLingerMs, shutdownTimeoutMs } = this.config;
    await sleep(shutdownDelayMs);
    // Not `server.close()`: it closes idle connections at once and stops checking time-outs.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(this.server, () => resolve()));
    this.eventStreams.end();
    const deadline = setTimeout(() => this.cut(), shutdownTimeoutMs);
    const sinceBegin = this.hasBegun ? performance.now() - this.startedAt : 0;
    const stop = new AbortController();
    const linger = sleep(Math.max(0, shutdownLingerMs - sinceBegin), undefined, { signal: stop.signal });
    await Promise.race([closed, linger]);
    stop.abort();
    this.connections.closeIdle();
    await closed;
    clearTimeout(deadline);
    this.server.close();
  }

  /** Closes all connections, and logs how many requests of which operations were in flight. */
  private cut(): void {
    const operations = new Map<string, number>();
    const requests = this.connections.unanswered();
    for (const { context, method } of requests) {
      const name = context.operation ?? `${method} without an operation`;
      operations.set(name, (operations.get(name) ?? 0) + 1);
    }
    const names = [...operations].map(([name, count]) => `${name} (${count})`).join(', ') || 'none had begun';
    this.log.warn(
      `Cutting ${requests.length} requests that did not finish within ${this.config.shutdownTimeoutMs} ms: ${names}.`,
    );
    this.connections.closeAll();
  }
}

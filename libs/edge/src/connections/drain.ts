import { Logger } from '@nestjs/common';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { integer, limit, milliseconds, type SettingsOf } from '#settings';
import { stopListening } from '../node-http.internals.js';
import type { Connections } from './connections.js';

export const DRAIN_SETTINGS = {
  shutdownDelayMs: integer(
    'SHUTDOWN_DELAY_MS',
    0,
    [0, 600_000],
    'After SIGTERM the service accepts connections for this time in ms, while /health/ready returns 503, so that a load ' +
      'balancer removes it.',
  ),
  shutdownTimeoutMs: milliseconds(
    'SHUTDOWN_TIMEOUT_MS',
    15_000,
    'Requests in flight have this time in ms to finish, after the delay; then they are cut.',
  ),
  /** Time in ms from the stop signal until idle connections are closed: clients may be sending requests on them. */
  shutdownLingerMs: limit(1_000),
};

/**
 * The graceful shutdown of the HTTP server, begun by Nest's `app.close()`, in which `/health/ready` already returns 503:
 *
 * 1. For SHUTDOWN_DELAY_MS the server still accepts connections, until load balancers have seen the 503.
 * 2. It stops listening, and event streams end. Idle connections stay open until `shutdownLingerMs` after step 1 began, because a client
 *    may be sending a request at this moment.
 * 3. Requests in flight finish. After SHUTDOWN_TIMEOUT_MS, counted from the end of the delay, the rest is cut.
 */
export async function drain(
  server: Server,
  connections: Connections,
  { shutdownDelayMs, shutdownLingerMs, shutdownTimeoutMs }: SettingsOf<typeof DRAIN_SETTINGS>,
): Promise<void> {
  await sleep(shutdownDelayMs);
  const closed = new Promise<void>((resolve) => stopListening(server, resolve));
  const deadline = setTimeout(() => {
    const requests = connections.closeAll();
    const names = requests.map(({ context, method }) => context.operation ?? `${method} without an operation`);
    new Logger('Drain').warn(
      `Cutting ${requests.length} requests that did not finish within ${shutdownTimeoutMs} ms: ` +
        `${[...new Set(names)].join(', ') || 'none had begun'}.`,
    );
  }, shutdownTimeoutMs);
  connections.endStreams();
  const lingerMs = Math.max(0, shutdownLingerMs - shutdownDelayMs);
  await Promise.race([closed, sleep(lingerMs, undefined, { ref: false })]);
  // Those that have begun meanwhile.
  connections.endStreams();
  connections.closeIdle();
  await closed;
  clearTimeout(deadline);
  server.close();
}

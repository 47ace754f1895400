import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Logger } from 'pino';
import type { Config } from '../../config.js';
import { StartupError } from '../errors/startup-error.js';
import { GroupMetrics } from './group-metrics.js';
import { createLogger } from '../observability/logger.js';

/** Time in ms until a process that ended is replaced. It doubles each time the new one ends early, up to the longest. */
const FIRST_RESTART_DELAY_MS = 100;
const LONGEST_RESTART_DELAY_MS = 30_000;

/** A process that has lived for so many ms was well: what ended it begins with the first delay again. */
const STEADY_AFTER_MS = 60_000;

/** Time in ms that a process has to end beyond SHUTDOWN_DELAY_MS and SHUTDOWN_TIMEOUT_MS: to close its database and its log. */
const SHUTDOWN_MARGIN_MS = 6_000;

/**
 * Runs `WEB_CONCURRENCY` processes of this program that listen on one port, and replaces those that end. This process
 * serves no request itself: it hands connections to them in turn.
 *
 * One process starts first: it applies the migrations if it is told to, and a start that must fail fails once. The others
 * start when it listens. SIGTERM and SIGINT let all of them drain; a second signal ends everything at once.
 */
export class ProcessGroup {
  private readonly log: Logger;
  private readonly metrics = new GroupMetrics();
  private readonly workers = new Set<Worker>();
  private environment: Record<string, string> = {};
  private hasListened = false;
  private isStopping = false;
  private exitCode = 0;
  private finish: (exitCode: number) => void = () => undefined;

  constructor(
    private readonly config: Config,
    /** Told of the port once, when the first process listens. */
    private readonly onListening: (port: number) => void,
  ) {
    this.log = createLogger(config);
  }

  /**
   * Serves until it is told to stop.
   *
   * @returns the exit code: 0 when every process has drained, 1 when one had to be killed or failed as it stopped, or when
   *   the first one did not start, which has said why
   * @throws StartupError when the first process is killed before it listens; an error of listen when no port is free
   */
  async run(): Promise<number> {
    if (this.config.port === 0) {
      // Every process, whenever it starts, must ask for the same port.
      this.environment = { PORT: String(await freePort(this.config.host)) };
    }
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => this.stop());
    }
    // Numbers that are none, which some metrics are at first, survive this form alone.
    cluster.setupPrimary({ serialization: 'advanced' });
    return new Promise((resolve, reject) => {
      this.finish = resolve;
      this.start(0, reject);
    });
  }

  /** @param earlyEnds how many processes before this one, in a row and in its place, ended early */
  private start(earlyEnds: number, fail?: (error: StartupError) => void): void {
    const startedAt = performance.now();
    const worker = cluster.fork(this.environment);
    let listens = false;
    this.workers.add(worker);
    closeConnectionsLostBy(worker);
    worker.once('listening', ({ port }: { port: number }) => {
      listens = true;
      if (!this.hasListened) this.beginWith(port);
    });
    worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => {
      this.workers.delete(worker);
      const how = signal ?? `exit code ${code}`;
      if (this.isStopping) {
        // One that has not listened yet has nothing to drain, and ends of the signal itself.
        if (code !== 0 && listens) this.exitCode = 1;
        if (this.workers.size === 0) this.finish(this.exitCode);
      } else if (this.hasListened) {
        const steady = performance.now() - startedAt >= STEADY_AFTER_MS;
        this.replace(worker, how, steady ? 0 : earlyEnds);
      } else if (signal !== null) {
        fail?.(
          new StartupError(`The first process was ended by ${signal} before it listened. Start the service again.`),
        );
      } else {
        this.finish(1);
      }
    });
  }

  private beginWith(port: number): void {
    this.hasListened = true;
    for (let count = 1; count < this.config.webConcurrency; count++) {
      this.start(0);
    }
    this.onListening(port);
  }

  private replace(ended: Worker, how: string, earlyEnds: number): void {
    const delay = Math.min(FIRST_RESTART_DELAY_MS * 2 ** earlyEnds, LONGEST_RESTART_DELAY_MS);
    const level = how === 'exit code 0' ? 'info' : 'error';
    this.log[level](
      { ended: ended.process.pid, delayMs: delay },
      `A process ended (${how}); another starts in ${delay} ms.`,
    );
    this.metrics.restarts.inc();
    setTimeout(() => {
      if (!this.isStopping) this.start(earlyEnds + 1);
    }, delay);
  }

  private stop(): void {
    if (this.isStopping) {
      this.signal('SIGKILL');
      process.exit(1);
    }
    this.isStopping = true;
    if (this.workers.size === 0) {
      this.finish(0);
      return;
    }
    this.signal('SIGTERM');
    const limit = this.config.shutdownDelayMs + this.config.shutdownTimeoutMs + SHUTDOWN_MARGIN_MS;
    setTimeout(() => {
      this.log.error(`Killing ${this.workers.size} processes that did not end within ${limit} ms.`);
      this.exitCode = 1;
      this.signal('SIGKILL');
    }, limit);
  }

  private signal(signal: NodeJS.Signals): void {
    for (const worker of this.workers) {
      worker.process.kill(signal);
    }
  }
}

/** The connection that a process was handed last. */
const handedOver = new Map<Worker, { close(): void }>();

/**
 * node:cluster keeps a connection open until the process that it was handed to says that it has it. One that dies before
 * never says so, and the client would wait for ever.
 */
function closeConnectionsLostBy(worker: Worker): void {
  const channel = worker.process;
  const send = channel.send.bind(channel) as (...parameters: unknown[]) => boolean;
  channel.send = (message: unknown, connection?: unknown, ...more: unknown[]): boolean => {
    if (connection instanceof Object && 'close' in connection) {
      handedOver.set(worker, connection as { close(): void });
    }
    return send(message, connection, ...more);
  };
  worker.once('exit', () => {
    const connection = handedOver.get(worker);
    handedOver.delete(worker);
    // What a process that stops sends back is handed to another. To close what is closed does nothing.
    if (![...handedOver.values()].includes(connection as never)) connection?.close();
  });
}

async function freePort(host: string): Promise<number> {
  const server = createServer();
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

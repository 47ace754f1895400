import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { createLogger } from '#observability';
import { onStopSignal } from '#runtime';
import { type Config, product } from '#settings';
import { GroupMetrics } from './group-metrics.js';

/**
 * Delay in ms before an ended worker is restarted. It doubles each time the new worker ends early, up to the longest.
 */
const FIRST_RESTART_DELAY_MS = 100;
const LONGEST_RESTART_DELAY_MS = 30_000;

/** After this uptime, in ms, a worker counts as healthy, and the restart delay starts over. */
const STEADY_AFTER_MS = 60_000;

/**
 * Time in ms that a worker has after SHUTDOWN_DELAY_MS and SHUTDOWN_TIMEOUT_MS to close its database and log, before it
 * is killed.
 */
const SHUTDOWN_MARGIN_MS = 6_000;

/**
 * Runs `WEB_CONCURRENCY` worker processes of this program on one port, and replaces workers that end. This primary
 * process serves no requests: it hands each connection to the next worker.
 *
 * One worker starts alone, so that only one applies migrations and a failing start fails once. The others start when it
 * listens. On SIGTERM or SIGINT all workers drain; a second signal, more than a second later, kills them at once.
 */
export class ProcessGroup {
  private readonly log: Logger;
  private readonly metrics = new GroupMetrics();
  private readonly workers = new Set<Worker>();
  private hasListened = false;
  private isStopping = false;
  private exitCode = 0;
  /** Resolves the promise of `run`. */
  private finish: (exitCode: number) => void = () => undefined;

  constructor(
    private readonly config: Config,
    /** Called once with the port, when the first worker listens. */
    private readonly onListening: (port: number) => void,
  ) {
    this.log = createLogger(config);
  }

  /**
   * Runs the group until a signal stops it.
   *
   * @returns the exit code: 0 when every worker has drained; 1 when a worker failed while stopping or had to be killed, or
   *   when the first worker did not start; then the cause is printed
   */
  run(): Promise<number> {
    onStopSignal(
      () => this.stop(),
      () => {
        this.signal('SIGKILL');
        process.exit(1);
      },
    );
    // JSON would turn NaN, the initial value of some metrics, into null.
    cluster.setupPrimary({ serialization: 'advanced' });
    return new Promise((resolve) => {
      this.finish = resolve;
      this.start(0);
    });
  }

  /**
   * Starts a worker.
   *
   * @param earlyEnds number of this worker's predecessors, in a row, that ended early
   */
  private start(earlyEnds: number): void {
    const startedAt = performance.now();
    const worker = cluster.fork();
    let listens = false;
    this.workers.add(worker);
    closeConnectionsLostBy(worker);
    worker.once('listening', ({ port }: { port: number }) => {
      listens = true;
      if (this.hasListened) return;
      this.hasListened = true;
      for (let count = 1; count < this.config.webConcurrency; count++) this.start(0);
      this.onListening(port);
    });
    worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => {
      this.workers.delete(worker);
      const how = signal ?? `exit code ${code}`;
      if (this.isStopping) {
        // A worker that does not listen yet has nothing to drain; the signal ends it, which is no failure.
        if (code !== 0 && listens) this.exitCode = 1;
        if (this.workers.size === 0) this.finish(this.exitCode);
      } else if (this.hasListened) {
        const isSteady = performance.now() - startedAt >= STEADY_AFTER_MS;
        this.replace(worker, how, isSteady ? 0 : earlyEnds);
      } else {
        // A worker that exits has printed the cause.
        if (signal !== null)
          process.stderr.write(`${product().name}: ${signal} ended the first process before it listened.\n`);
        this.finish(1);
      }
    });
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

/** The connection that was handed to each worker last. */
const handedOver = new Map<Worker, { close(): void }>();

/**
 * Closes the connection that was being handed to a worker when it died. node:cluster keeps a connection open until the
 * worker confirms it; without the confirmation, the client would wait for ever.
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
    // A stopping worker returns its connection, which then goes to another worker: keep it open. Closing twice is
    // harmless.
    if (![...handedOver.values()].includes(connection as never)) connection?.close();
  });
}

import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, Counter, Registry } from 'prom-client';
import type { HttpConfig } from '#http';
import { createLogger, GROUP_SCRAPE, type LOG_SETTINGS } from '#observability';
import { onStopSignal } from '#runtime';
import { integer, type SettingsOf } from '#settings';

export const PROCESS_SETTINGS = {
  webConcurrency: {
    ...integer(
      'WEB_CONCURRENCY',
      1,
      [1, 64],
      'Processes that share the port; one per core is a good number. More than one needs DATABASE_URL. Limits "per process" ' +
        'below apply to each of them.',
    ),
    // The embedded database belongs to one process.
    needs: 'DATABASE_URL',
  },
};

/** Delay in ms before an ended worker is restarted. It doubles each time the new one ends early, up to the longest. */
const FIRST_RESTART_DELAY_MS = 100;
const LONGEST_RESTART_DELAY_MS = 30_000;

/** After this uptime, in ms, a worker counts as healthy, and the restart delay starts over. */
const STEADY_AFTER_MS = 60_000;

/**
 * Runs `WEB_CONCURRENCY` worker processes of this program on one port, and replaces workers that end. This primary
 * process serves no requests: it hands each connection to the next worker.
 *
 * One worker starts alone, so that only one applies migrations and a failing start fails once. The others start when it
 * listens. On SIGTERM, SIGINT or SIGHUP all workers drain and end; a second signal, more than a second later, kills them at once.
 */
export class ProcessGroup {
  private readonly log = createLogger(this.config);
  private readonly ownMetrics = new Registry();
  private readonly restarts = new Counter({
    name: `${this.config.product.name}_process_restarts_total`,
    help: 'Processes of the group that ended and were replaced.',
    registers: [this.ownMetrics],
  });
  private readonly workers = new Set<Worker>();
  private hasListened = false;
  private isStopping = false;

  constructor(
    private readonly config: HttpConfig & SettingsOf<typeof PROCESS_SETTINGS & typeof LOG_SETTINGS>,
    /** Called once with the port, when the first worker listens. */
    private readonly onListening: (port: number) => void,
  ) {}

  /**
   * Runs the group until a signal stops it, and ends the process: with code 0 when every worker has drained; with 1 when a
   * worker failed while stopping, or when the first worker did not start; then the cause is printed.
   */
  run(): void {
    onStopSignal(
      () => {
        this.isStopping = true;
        if (this.workers.size === 0) process.exit();
        this.signal('SIGTERM');
      },
      () => {
        this.signal('SIGKILL');
        process.exit(1);
      },
    );
    // JSON would turn NaN, the initial value of some metrics, into null.
    cluster.setupPrimary({ serialization: 'advanced' });
    this.respondToScrapes();
    this.start(0);
  }

  /** Whichever worker gets a scrape, the response has the metrics of all. */
  private respondToScrapes(): void {
    const workers = new AggregatorRegistry();
    cluster.on('message', (worker, message: unknown) => {
      if (message !== GROUP_SCRAPE) return;
      Promise.all([this.ownMetrics.metrics(), workers.clusterMetrics()])
        .then((texts) => worker.send(texts.join(''), () => undefined))
        // The scraped worker gets no reply and responds 503.
        .catch((error: unknown) => process.emitWarning(`The metrics of the group are not available: ${String(error)}`));
    });
  }

  /** @param earlyEnds number of this worker's predecessors, in a row, that ended early */
  private start(earlyEnds: number): void {
    const startedAt = performance.now();
    const worker = cluster.fork();
    let listens = false;
    this.workers.add(worker);
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
        if (code !== 0 && listens) process.exitCode = 1;
        if (this.workers.size === 0) process.exit();
      } else if (this.hasListened) {
        const isSteady = performance.now() - startedAt >= STEADY_AFTER_MS;
        this.replace(worker, how, isSteady ? 0 : earlyEnds);
      } else {
        // A worker that exits has printed the cause.
        if (signal !== null)
          process.stderr.write(`${this.config.product.name}: ${signal} ended the first process before it listened.\n`);
        process.exit(1);
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
    this.restarts.inc();
    setTimeout(() => {
      if (!this.isStopping) this.start(earlyEnds + 1);
    }, delay);
  }

  private signal(signal: NodeJS.Signals): void {
    for (const worker of this.workers) worker.process.kill(signal);
  }
}

import cluster, { type Worker } from 'node:cluster';

/** Interval in ms at which workers report and the primary process checks. */
const INTERVAL_MS = 500;

/** From a worker to the primary process: the worker's event loop is running. */
interface AliveMessage {
  readonly kind: 'alive';
}

/**
 * Kills workers that hang: their event loop has not run for HANG_TIMEOUT_MS, because a handler computes endlessly or the
 * process was stopped (SIGSTOP). Runs in the primary process.
 *
 * Time is counted in checks of the primary process, not by a clock. So no time counts while the primary process itself is
 * stopped or gets no processor time: when it continues, it checks once and then reads the reports of the workers.
 */
export class WorkerWatch {
  /** Number of checks since the last report, by worker. */
  private readonly missed = new Map<Worker, number>();
  private readonly timer: NodeJS.Timeout;

  /** @param onHang called before a worker is killed */
  constructor(
    private readonly timeoutMs: number,
    private readonly onHang: (worker: Worker) => void,
  ) {
    cluster.on('message', (worker, message: AliveMessage) => {
      if (message.kind === 'alive' && this.missed.has(worker)) this.missed.set(worker, 0);
    });
    this.timer = setInterval(() => this.check(), INTERVAL_MS).unref();
  }

  /** Watches a worker until it ends. To be called when the worker listens, because its start may block for long. */
  begin(worker: Worker): void {
    this.missed.set(worker, 0);
    worker.once('exit', () => this.missed.delete(worker));
  }

  /** Ends the watch of all workers. */
  stop(): void {
    clearInterval(this.timer);
  }

  private check(): void {
    for (const [worker, missed] of this.missed) {
      if (missed * INTERVAL_MS < this.timeoutMs) {
        this.missed.set(worker, missed + 1);
      } else {
        this.missed.delete(worker);
        this.onHang(worker);
        // A stopped process reacts to no other signal.
        worker.process.kill('SIGKILL');
      }
    }
  }
}

/** Lets this worker report to the primary process for as long as it runs. */
export function reportAlive(): void {
  const channel = process as { send?: (message: AliveMessage, done: () => void) => void };
  let isTaken = true;
  setInterval(() => {
    // Sends nothing while the last message is unread: messages would pile up if the primary process does not read.
    if (!isTaken || !process.connected) return;
    isTaken = false;
    channel.send?.({ kind: 'alive' }, () => (isTaken = true));
  }, INTERVAL_MS).unref();
}

import cluster, { type Worker } from 'node:cluster';

/** Interval in ms at which workers report and the primary process looks. */
const INTERVAL_MS = 500;

/** From a worker to the primary process: the worker's event loop turns. */
interface AliveMessage {
  readonly kind: 'alive';
}

/**
 * Kills workers that hang: whose event loop has not turned for HANG_TIMEOUT_MS, because a handler computes without an end
 * or somebody has stopped the process. Runs in the primary process.
 *
 * Time is counted in looks of the primary process, not by a clock. So nothing counts while that process is stopped itself,
 * with its workers or alone, or gets no processor time: it looks once when it continues, and then reads what workers have
 * reported.
 */
export class WorkerWatch {
  /** Looks since the last report, by worker. */
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
    this.timer = setInterval(() => this.look(), INTERVAL_MS).unref();
  }

  /** Watches a worker until it ends. A worker that starts may be busy for long, so begin when it listens. */
  begin(worker: Worker): void {
    this.missed.set(worker, 0);
    worker.once('exit', () => this.missed.delete(worker));
  }

  /** Ends the watch of all workers. */
  stop(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    for (const [worker, missed] of this.missed) {
      if (missed * INTERVAL_MS < this.timeoutMs) {
        this.missed.set(worker, missed + 1);
      } else {
        this.missed.delete(worker);
        this.onHang(worker);
        // A stopped process takes no other signal.
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
    // While the primary process reads nothing, messages would pile up.
    if (!isTaken || !process.connected) return;
    isTaken = false;
    channel.send?.({ kind: 'alive' }, () => (isTaken = true));
  }, INTERVAL_MS).unref();
}

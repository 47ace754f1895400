import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { AggregatorRegistry, Counter, Registry } from 'prom-client';
import { type MetricsMessage, type Snapshot, tell } from '#observability';
import { product } from '#settings';

/** How long, in ms, a scrape waits for a worker. After that, the last values that the worker reported count. */
const PROCESS_ANSWER_MS = 1_000;

/**
 * The metrics of a process group (`WEB_CONCURRENCY`): a scrape of any worker shows the totals of all. Runs in the
 * primary process, which collects the metrics of the workers. Counters and histograms are added, gauges are aggregated
 * by prom-client.
 *
 * Totals keep the last values reported by ended workers, so that no counter falls while the group runs.
 */
export class GroupMetrics {
  private readonly own = new Registry();

  readonly restarts = new Counter({
    name: `${product().name}_process_restarts_total`,
    help: 'Processes of the group that ended and were replaced.',
    registers: [this.own],
  });

  private readonly listening = new Set<Worker>();
  private readonly latest = new Map<Worker, Snapshot>();
  /** Emits the number of a worker that has answered or ended. */
  private readonly settled = new EventEmitter().setMaxListeners(0);
  private readonly ended: Snapshot[] = [];
  private collecting: Promise<string> | undefined;

  constructor() {
    cluster.on('listening', (worker) => this.listening.add(worker));
    cluster.on('exit', (worker) => this.forget(worker));
    cluster.on('message', (worker, message: MetricsMessage) => {
      if (message.kind === 'group metrics wanted') {
        this.text()
          .then((text) => tell(worker, { kind: 'group metrics', text }))
          // The scraped worker gets no answer and responds 503.
          .catch((error: unknown) =>
            process.emitWarning(`The metrics of the group could not be collected: ${String(error)}`),
          );
      } else if (message.kind === 'metrics') {
        this.latest.set(worker, message.metrics);
        this.settled.emit(String(worker.id));
      }
    });
  }

  private text(): Promise<string> {
    return (this.collecting ??= this.collect().finally(() => (this.collecting = undefined)));
  }

  private async collect(): Promise<string> {
    const signal = AbortSignal.timeout(PROCESS_ANSWER_MS);
    const answers = [...this.listening].map((worker) => once(this.settled, String(worker.id), { signal }));
    for (const worker of this.listening) tell(worker, { kind: 'metrics wanted' });
    await Promise.allSettled(answers);
    // One snapshot for all ended workers, so that restarts do not fill the memory.
    this.ended.push(await sum(this.ended.splice(0)).getMetricsAsJSON());
    return sum([await this.own.getMetricsAsJSON(), ...this.ended, ...this.latest.values()]).metrics();
  }

  private forget(worker: Worker): void {
    const metrics = this.latest.get(worker);
    if (metrics !== undefined) this.ended.push(metrics.filter(({ type }) => COUNTS.has(type)));
    this.listening.delete(worker);
    this.latest.delete(worker);
    this.settled.emit(String(worker.id));
  }
}

/** Metric types that only grow. Other types, such as gauges, describe a process that runs and end with it. */
const COUNTS = new Set(['counter', 'histogram'] as unknown[]);

function sum(snapshots: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate([...snapshots]);
}

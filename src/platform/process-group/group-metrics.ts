import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { AggregatorRegistry, Counter, Registry } from 'prom-client';
import { countDroppedLogLines } from '../metrics/metrics.js';
import { type MetricsMessage, type Snapshot, tell } from '../metrics/scraped-metrics.js';

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
    name: 'petstore_process_restarts_total',
    help: 'Processes of the group that ended and were replaced.',
    registers: [this.own],
  });

  private readonly listening = new Set<Worker>();
  private readonly latest = new Map<Worker, Snapshot>();
  private readonly answered = new Map<Worker, () => void>();
  private readonly ended: Snapshot[] = [];
  private collecting: Promise<string> | undefined;

  constructor() {
    countDroppedLogLines(this.own);
    cluster.on('listening', (worker) => this.listening.add(worker));
    cluster.on('exit', (worker) => this.forget(worker));
    cluster.on('message', (worker, message: MetricsMessage) => {
      if (message.kind === 'group metrics wanted') {
        this.text()
          .then((text) => tell(worker, { kind: 'group metrics', scrape: message.scrape, text }))
          // The scraped worker gets no answer and responds 503.
          .catch((error: unknown) =>
            process.emitWarning(`The metrics of the group could not be collected: ${String(error)}`),
          );
      } else if (message.kind === 'metrics') {
        this.latest.set(worker, message.metrics);
        this.answered.get(worker)?.();
      }
    });
  }

  private text(): Promise<string> {
    return (this.collecting ??= this.collect().finally(() => (this.collecting = undefined)));
  }

  private async collect(): Promise<string> {
    const stop = new AbortController();
    const tooLate = sleep(PROCESS_ANSWER_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    await Promise.race([Promise.all([...this.listening].map((worker) => this.ask(worker))), tooLate]);
    stop.abort();
    this.answered.clear();
    // One snapshot for all ended workers, so that restarts do not fill the memory.
    this.ended.push(await sum(this.ended.splice(0)).getMetricsAsJSON());
    return sum([await this.own.getMetricsAsJSON(), ...this.ended, ...this.latest.values()]).metrics();
  }

  private ask(worker: Worker): Promise<void> {
    return new Promise((resolve) => {
      this.answered.set(worker, resolve);
      tell(worker, { kind: 'metrics wanted' });
    });
  }

  private forget(worker: Worker): void {
    const metrics = this.latest.get(worker);
    if (metrics !== undefined) this.ended.push(metrics.filter(({ type }) => COUNTS.has(type)));
    this.listening.delete(worker);
    this.latest.delete(worker);
    this.answered.get(worker)?.();
  }
}

/** Metric types that only grow. Other types, such as gauges, describe a process that runs and end with it. */
const COUNTS = new Set(['counter', 'histogram'] as unknown[]);

function sum(snapshots: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots as unknown as object[]);
}

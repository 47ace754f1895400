import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, Counter, Registry } from 'prom-client';
import type { MetricsReport, Snapshot } from '#observability';
import { product } from '#settings';

/**
 * The metrics of a process group (`WEB_CONCURRENCY`): a scrape of any worker shows the totals of all. Runs in the
 * primary process, to which each worker reports its metrics every second. Counters and histograms are added, gauges are
 * aggregated by prom-client.
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

  private readonly latest = new Map<Worker, Snapshot>();
  /** The sums of the workers that have ended. */
  private ended: Promise<Snapshot> = Promise.resolve([]);

  constructor() {
    // Follows the last message of a worker, which its `exit` may precede.
    cluster.on('disconnect', (worker) => this.forget(worker));
    cluster.on('message', (worker, report: Partial<MetricsReport> | null) => {
      // Modules of the service may send messages of their own.
      if (!Array.isArray(report?.metrics)) return;
      // A worker that is closing has cleared its metrics.
      if (report.metrics.length > 0) this.latest.set(worker, report.metrics as Snapshot);
      if (report.isScraped !== true) return;
      this.text()
        .then((text) => worker.send(text, () => undefined))
        // The scraped worker gets no reply and responds 503.
        .catch((error: unknown) =>
          process.emitWarning(`The metrics of the group could not be collected: ${String(error)}`),
        );
    });
  }

  private async text(): Promise<string> {
    const others = [await this.own.getMetricsAsJSON(), await this.ended];
    return sum([...others, ...this.latest.values()]).metrics();
  }

  private forget(worker: Worker): void {
    const counts = (this.latest.get(worker) ?? []).filter(({ type }) => COUNTS.has(type));
    this.latest.delete(worker);
    this.ended = this.ended.then((sums) => sum([sums, counts]).getMetricsAsJSON());
  }
}

/** Metric types that only grow. Other types, such as gauges, describe a process that runs and end with it. */
const COUNTS = new Set(['counter', 'histogram'] as unknown[]);

function sum(snapshots: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate([...snapshots]);
}

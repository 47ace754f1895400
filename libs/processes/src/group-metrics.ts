import cluster from 'node:cluster';
import { AggregatorRegistry, Counter, Registry } from 'prom-client';
import { GROUP_SCRAPE } from '#observability';

/**
 * Responds to the scrapes of a process group, in its primary process: whichever worker gets a scrape, the response has the
 * metrics of all.
 *
 * @param product the name of the product, the start of the counter's
 * @returns the counter of workers that ended and were replaced
 */
export function respondToScrapes(product: string): Counter {
  const own = new Registry();
  const workers = new AggregatorRegistry();
  cluster.on('message', (worker, message: unknown) => {
    if (message !== GROUP_SCRAPE) return;
    Promise.all([own.metrics(), workers.clusterMetrics()])
      .then((texts) => worker.send(texts.join(''), () => undefined))
      // The scraped worker gets no reply and responds 503.
      .catch((error: unknown) => process.emitWarning(`The metrics of the group are not available: ${String(error)}`));
  });
  return new Counter({
    name: `${product}_process_restarts_total`,
    help: 'Processes of the group that ended and were replaced.',
    registers: [own],
  });
}

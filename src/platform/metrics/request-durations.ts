import type { Metric, MetricObjectWithValues, MetricValue, Registry } from 'prom-client';

const NAME = 'petstore_http_request_duration_seconds';

const HELP =
  'Time from the header section of a request to the end of its answer. operation is empty where no route matched. ' +
  'status is aborted where the answer was not sent completely.';

/** Upper bounds of the buckets in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Value = MetricValue<string> & { readonly metricName: string };

/** The answers of one operation, method and status. */
interface Series {
  readonly operation: string;
  readonly method: string;
  readonly status: number | string;
  /** Number of answers in each bucket; the last bucket is above the last bound. */
  readonly counts: number[];
  /** Sum of the durations in seconds. */
  sum: number;
}

/**
 * The histogram of request durations, by operation, method and status. A scrape shows the same as prom-client's Histogram,
 * which would build a text of all labels for each answer. This class searches the few series of the operation.
 */
export class RequestDurations {
  /** A registry requires only `name`, `get` and `reset` of a metric. */
  readonly name = NAME;

  private readonly seriesByOperation = new Map<string, Series[]>();

  constructor(registry: Registry) {
    registry.registerMetric(this as unknown as Metric);
  }

  /**
   * Counts one answer.
   *
   * @param operation empty where no route matched
   */
  observe(operation: string, method: string, status: number | string, seconds: number): void {
    const series = this.seriesOf(operation, method, status);
    let bucket = 0;
    while (bucket < BOUNDS.length && seconds > (BOUNDS[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += seconds;
  }

  /** The values, in prom-client's form. */
  get(): Promise<Omit<MetricObjectWithValues<Value>, 'collect'>> {
    return Promise.resolve({
      name: NAME,
      help: HELP,
      type: 'histogram' as unknown as MetricObjectWithValues<Value>['type'],
      aggregator: 'sum',
      values: [...this.seriesByOperation.values()].flat().flatMap(valuesOf),
    });
  }

  reset(): void {
    this.seriesByOperation.clear();
  }

  private seriesOf(operation: string, method: string, status: number | string): Series {
    let ofOperation = this.seriesByOperation.get(operation);
    if (ofOperation === undefined) {
      ofOperation = [];
      this.seriesByOperation.set(operation, ofOperation);
    }
    let series = ofOperation.find((each) => each.status === status && each.method === method);
    if (series === undefined) {
      series = { operation, method, status, counts: new Array<number>(BOUNDS.length + 1).fill(0), sum: 0 };
      ofOperation.push(series);
    }
    return series;
  }
}

/** The values of a series in the text format, in which each bucket includes the lower ones. */
function valuesOf({ operation, method, status, counts, sum }: Series): Value[] {
  const labels = { operation, method, status };
  let count = 0;
  const buckets = counts.map((inBucket, index): Value => {
    count += inBucket;
    return { metricName: `${NAME}_bucket`, labels: { le: BOUNDS[index] ?? '+Inf', ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${NAME}_sum`, labels, value: sum },
    { metricName: `${NAME}_count`, labels, value: count },
  ];
}

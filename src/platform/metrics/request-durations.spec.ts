import fc from 'fast-check';
import { AggregatorRegistry, Histogram, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { deserialize, serialize } from 'node:v8';
import { RequestDurations } from './request-durations.js';

/* The histogram of the service must give the same results as that of prom-client. */

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Observation {
  readonly operation: string;
  readonly method: string;
  readonly status: number | string;
  readonly seconds: number;
}

const observation: fc.Arbitrary<Observation> = fc.record({
  operation: fc.constantFrom('', 'listOrders', 'findOrder', 'a "quote"', 'back\\slash', 'new\nline', '__proto__', '🐕'),
  method: fc.constantFrom('GET', 'POST', 'M-SEARCH'),
  status: fc.constantFrom<number | string>(200, 201, 404, 503, 'aborted'),
  seconds: fc.oneof(
    fc.constantFrom(...BOUNDS, 0),
    fc.constantFrom(...BOUNDS).map((bound) => bound * (1 + Number.EPSILON)),
    fc.constantFrom(...BOUNDS).map((bound) => bound * (1 - Number.EPSILON)),
    fc.double({ min: 0, max: 20, noNaN: true }),
  ),
});
const observations = fc.array(observation, { maxLength: 60 });

function own(observed: readonly Observation[]): Registry {
  const registry = new Registry();
  const durations = new RequestDurations(registry);
  for (const { operation, method, status, seconds } of observed) durations.observe(operation, method, status, seconds);
  return registry;
}

function promClients(observed: readonly Observation[]): Registry {
  const registry = new Registry();
  const histogram = new Histogram({
    name: 'petstore_http_request_duration_seconds',
    help: 'Time from the header section of a request to the end of its answer. operation is empty where no route matched. status is aborted where the answer was not sent completely.',
    labelNames: ['operation', 'method', 'status'] as const,
    buckets: BOUNDS,
    registers: [registry],
  });
  for (const { seconds, ...labels } of observed) histogram.observe(labels, seconds);
  return registry;
}

/** The labels of a line, except that of the bucket. */
const seriesOf = (line: string): string => line.replace(/^[^{#]*_(bucket|sum|count)\{(le="[^"]*",)?(.*)\} .*$/, '$3');

/**
 * The lines of a scrape, sorted by series. Only the order of series may differ; the order within a series must not.
 */
function linesOf(text: string): string[] {
  const order = (line: string): string => (line.startsWith('#') ? '' : `series ${seriesOf(line)}`);
  return text
    .split('\n')
    .map((line) => ({ line, order: order(line) }))
    .sort((one, other) => (one.order < other.order ? -1 : one.order > other.order ? 1 : 0))
    .map(({ line }) => line);
}

type Metrics = MetricObjectWithValues<MetricValue<string> & { metricName?: string }>[];

/** The metrics of a registry as objects, sorted in the same way, without prom-client's unused exemplars. */
function objectsOf(metrics: unknown): unknown {
  return (metrics as Metrics).map(({ values, ...metric }) => ({
    ...metric,
    values: values
      .map(({ metricName, labels, value }) => ({ metricName, labels, value }))
      .map((value) => ({ ...value, series: JSON.stringify({ ...value.labels, le: undefined }) }))
      .sort((one, other) => (one.series < other.series ? -1 : one.series > other.series ? 1 : 0)),
  }));
}

test('a scrape is the same as with prom-client’s histogram', async () => {
  await fc.assert(
    fc.asyncProperty(observations, async (observed) => {
      expect(linesOf(await own(observed).metrics())).toEqual(linesOf(await promClients(observed).metrics()));
    }),
    { numRuns: 300 },
  );
});

test('the object for other processes is the same as with prom-client’s histogram', async () => {
  await fc.assert(
    fc.asyncProperty(observations, async (observed) => {
      const told = await own(observed).getMetricsAsJSON();
      const expected = await promClients(observed).getMetricsAsJSON();
      expect(objectsOf(told)).toEqual(objectsOf(expected));
    }),
    { numRuns: 200 },
  );
});

const JSON_FORM = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
/** A copy in the way in which processes of a group send each other objects. */
const ADVANCED_FORM = (value: unknown): unknown => deserialize(serialize(value));

test('the sum of several processes is the same as with prom-client’s histograms', async () => {
  const processes = fc.array(observations, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(processes, fc.constantFrom(JSON_FORM, ADVANCED_FORM), async (observed, form) => {
      const sumOf = async (registryOf: (of: readonly Observation[]) => Registry): Promise<string[]> => {
        const snapshots = await Promise.all(observed.map(async (of) => form(await registryOf(of).getMetricsAsJSON())));
        return linesOf(await AggregatorRegistry.aggregate(snapshots as object[]).metrics());
      };
      expect(await sumOf(own)).toEqual(await sumOf(promClients));
    }),
    { numRuns: 200 },
  );
});

test('a bucket includes its bound and all smaller values', async () => {
  const text = await own([
    { operation: 'findOrder', method: 'GET', status: 200, seconds: 0.25 },
    { operation: 'findOrder', method: 'GET', status: 200, seconds: 11 },
  ]).metrics();
  const counts = [...text.matchAll(/_bucket\{le="([^"]+)",operation="findOrder",method="GET",status="200"\} (\d+)$/gm)];
  expect(counts.map(([, bound, count]) => [bound, Number(count)])).toEqual([
    ...BOUNDS.map((bound) => [String(bound), bound < 0.25 ? 0 : 1]),
    ['+Inf', 2],
  ]);
  expect(text).toMatch(/_sum\{operation="findOrder",method="GET",status="200"\} 11\.25$/m);
  expect(text).toMatch(/_count\{operation="findOrder",method="GET",status="200"\} 2$/m);
});

test('resetMetrics of the registry removes all counts', async () => {
  const registry = own([{ operation: 'findOrder', method: 'GET', status: 200, seconds: 1 }]);
  registry.resetMetrics();
  expect(await registry.metrics()).toBe(await own([]).metrics());
});

test('without answers a scrape shows the metric without values', async () => {
  expect(await own([]).metrics()).toBe(await promClients([]).metrics());
});

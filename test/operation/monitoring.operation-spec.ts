import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ServiceProcess } from '../support/service-process.js';
import { send } from '../support/load.js';
import { useOwnServer } from '../support/own-database.js';
import { petstoreCommand } from './support/petstore-command.js';

/*
 * Monitoring: promtool checks the names of the metrics, the alerts with their tests, and the expressions of the
 * dashboard. Debian's package `prometheus` contains promtool.
 */

import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const ALERTS = 'ops/prometheus/alerts.yaml';
const DASHBOARD = 'ops/grafana/petstore.json';

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const alerts = (parse(read(ALERTS)) as { groups: { rules: { alert: string; expr: string }[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);
const panels = (JSON.parse(read(DASHBOARD)) as { panels: Panel[] }).panels;
const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Runs promtool; returns its exit code and output. */
function promtool(args: string[], input?: string): { code: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { cwd: ROOT, input, encoding: 'utf8' });
  if (error) throw new Error('These tests need promtool, of the Debian package prometheus.', { cause: error });
  return { code: status, output: stdout + stderr };
}

/** The names of the metrics in a PromQL expression. */
function metricsIn(expression: string): string[] {
  const names = expression.replace(/"[^"]*"/g, '""').match(/\b(?:petstore|nodejs|process)_\w+/g) ?? [];
  return names.map((name) => name.replace(/_(?:bucket|count|sum)$/, ''));
}

const own = useOwnServer();
let service: ServiceProcess;
let metrics: string;
beforeAll(async () => {
  const settings = {
    DATABASE_URL: own.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    BOOTSTRAP_API_KEY: 'bootstrap-key-of-the-fault-tests',
  };
  service = new ServiceProcess(settings, tmpdir());
  const origin = await service.origin();
  const command = 'keys create --client prometheus --scopes metrics:read,pets:read --quiet';
  const apiKey = (await petstoreCommand(tmpdir(), settings, ...command.split(' '))).stdout.trim();
  // Metrics with labels have a series only after they have counted something.
  await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey });
  metrics = (await send({ method: 'GET', path: '/metrics' }, { origin, apiKey })).text;
}, 120_000);
afterAll(() => service.kill());

test('promtool accepts the names and types of all metrics', () => {
  expect(metrics).toMatch(/^petstore_http_request_duration_seconds_count\{operation="listPets"/m);
  expect(promtool(['check', 'metrics'], metrics)).toEqual({ code: 0, output: '' });
});

test('the page of metrics describes every metric of the service, and no other', () => {
  const families = [...metrics.matchAll(/^# TYPE (petstore_\w+) /gm)].map(([, name = '']) => name);
  expect(families.length).toBeGreaterThan(15);
  const page = read('ops/prometheus/README.md');
  expect(families.filter((name) => !page.includes(name))).toEqual([]);
  const named = [...page.matchAll(/`(petstore_\w+)/g)].map(([, name = '']) =>
    name.replace(/_(?:bucket|count|sum)$/, ''),
  );
  expect(named.filter((name) => !families.includes(name))).toEqual([]);
});

test('the alerts are valid, and each fires when it must and not otherwise', () => {
  expect(promtool(['check', 'rules', ALERTS])).toMatchObject({ code: 0 });
  const { code, output } = promtool(['test', 'rules', 'ops/prometheus/alerts.test.yaml']);
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')]);
});

test('every metric of an alert or a panel exists', () => {
  const families = new Set([...metrics.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name));
  const used = expressions.flatMap(([where, expression]) => metricsIn(expression).map((name) => ({ where, name })));
  expect(used.length).toBeGreaterThan(40);
  expect(used.filter(({ name }) => !families.has(name))).toEqual([]);
});

test('every expression of the dashboard is valid', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'petstore-dashboard-'));
  try {
    const rules = panels
      .flatMap(({ targets = [] }) => targets)
      .map(({ expr }, index) => ({ record: `panel:${index}`, expr: expr.replaceAll('$__rate_interval', '5m') }));
    expect(rules.length).toBeGreaterThan(20);
    // On a healthy service these would be empty.
    const errors = expressions.filter(([title]) => /^(Share of failures|Errors by status|503 by cause)$/.test(title));
    expect(errors.map(([, expr]) => expr.includes(') or vector(0)'))).toEqual([true, true, true]);
    const file = join(directory, 'rules.yaml');
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    expect(promtool(['check', 'rules', file])).toMatchObject({ code: 0 });
  } finally {
    await rm(directory, { recursive: true });
  }
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/* The alerts, their tests and the runbook fit together. test/operation/monitoring lets promtool check that they are valid. */

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface Alert {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly runbook_url: string };
}

interface RuleTest {
  readonly name: string;
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
}

const alerts = (parse(read('ops/prometheus/alerts.yaml')) as { groups: { rules: Alert[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);
const { tests } = parse(read('ops/prometheus/alerts.test.yaml')) as { tests: RuleTest[] };
const runbook = read('docs/operating.md').split('\n## Alerts\n')[1]?.split('\n## ')[0] ?? '';

test('docs/operating.md has a section for exactly the alerts, in their order', () => {
  const names = [...runbook.matchAll(/^### (Petstore\w+)$/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(10);
  expect(names).toEqual(alerts.map(({ alert }) => alert));
});

test.each(alerts)(
  '$alert has a severity, a section of its name, a test in which it fires and resolves, and one in which it does not fire',
  (one) => {
    const { alert: name, labels, annotations } = one;
    expect(labels.severity).toMatch(/^(page|ticket)$/);
    expect(annotations.runbook_url).toBe(`https://petstore.example.com/docs/operating.md#${name.toLowerCase()}`);
    const resultsOf = (test: string): boolean[] => {
      const found = tests.filter((other) => other.name === test).flatMap(({ alert_rule_test }) => alert_rule_test);
      return found.map(({ alertname, exp_alerts }) => alertname === name && exp_alerts.length > 0);
    };
    expect([resultsOf(name), [...new Set(resultsOf(`not ${name}`))]]).toEqual([[true, false], [false]]);
  },
);

test('operating.md describes exactly the causes of a 503', () => {
  const source = read('libs/errors/src/api-error.ts').split('UnavailableCause =')[1]?.split(';')[0] ?? '';
  const causes = [...source.matchAll(/'(\w+)'/g)].map(([, cause]) => cause);
  expect(causes).toContain('database_away');
  const table = runbook.split('### Causes of a 503')[1] ?? '';
  const described = [...table.matchAll(/^\| `(\w+)` /gm)].map(([, cause]) => cause);
  expect(described).toEqual([...causes, 'other']);
  // PetstoreErrors alone fires for these, unless an instance is stopping or starting.
  const rules = read('ops/prometheus/alerts.yaml');
  expect(causes.filter((cause = '') => !rules.includes(cause))).toEqual(['draining', 'unsettled']);
});

/**
 * Writes all generated files: openapi.json, .env.example and the tables of settings from the code, the types
 * of the client from openapi.json, and the object of the Prometheus operator from the alerts.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prometheusRule } from './prometheus-rule.js';
import { withSettingsTable } from './settings-pages.js';

const root = join(import.meta.dirname, '..');

/** Runs a script of Node and returns its output; a failure ends this process. */
function run(script, args = [], options = {}) {
  try {
    return execFileSync(process.execPath, [join(root, script), ...args], {
      ...{ cwd: root, encoding: 'utf8', maxBuffer: 100_000_000, stdio: ['ignore', 'pipe', 'inherit'] },
      ...options,
    });
  } catch (error) {
    process.exit(error.status ?? 1);
  }
}

const TYPES = 'clients/typescript/src/generated';
const generated = () => [
  ...readdirSync(join(root, TYPES)).map((name) => `${TYPES}/${name}`),
  ...['openapi.json', '.env.example', 'docs/operating.md'],
  'ops/kubernetes/monitoring/prometheus-rule.yaml',
];
const textOf = (file) => readFileSync(join(root, file), 'utf8');
const write = (file, text) => writeFileSync(join(root, file), text);
const before = new Map(generated().map((file) => [file, textOf(file)]));

run('scripts/build-if-needed.js');
// Without settings and .env: the published document has no addresses of a deployment.
const document = run('dist/src/cli.js', ['openapi'], { cwd: tmpdir(), env: {} });
write('openapi.json', document);
run('clients/typescript/scripts/generate.js');

const { settingsOf } = await import('../dist/libs/definition/src/read-settings.js');
const { PET_STORE } = await import('../dist/src/app.description.js');
const settings = await settingsOf(PET_STORE);
write('.env.example', run('dist/src/cli.js', ['settings'], { cwd: tmpdir(), env: {} }));
write('docs/operating.md', withSettingsTable(textOf('docs/operating.md'), settings));

write('ops/kubernetes/monitoring/prometheus-rule.yaml', prometheusRule(textOf('ops/prometheus/alerts.yaml')));

const changed = generated().filter((file) => textOf(file) !== before.get(file));
process.stdout.write(
  changed.length === 0
    ? `All ${before.size} generated files are current.\n`
    : `Changed: ${changed.join(', ')}. The other generated files are current.\n`,
);

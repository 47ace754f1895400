/**
 * Writes all generated files: openapi.json, .env.example and the tables of settings and of reaches from the code, the types
 * of the client from openapi.json, and the object of the Prometheus operator from the alerts.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prometheusRule } from './prometheus-rule.js';
import { withReachesTable } from './reaches-page.js';
import { environmentExample, withSettingsTable } from './settings-pages.js';

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

run('scripts/build-if-needed.js');
// Without settings and .env: the published document has no addresses of a deployment.
const document = run('dist/src/cli.js', ['openapi'], { cwd: tmpdir(), env: {} });
writeFileSync(join(root, 'openapi.json'), document);
run('clients/typescript/scripts/generate.js');

const { settingsOf } = await import('../dist/libs/service/src/settings.js');
const { PET_STORE } = await import('../dist/src/app.description.js');
const settings = await settingsOf(PET_STORE);
writeFileSync(join(root, '.env.example'), environmentExample(settings));
const settingsPage = join(root, 'docs/operating.md');
writeFileSync(settingsPage, withSettingsTable(readFileSync(settingsPage, 'utf8'), settings));

const internals = readdirSync(join(root, 'dist/libs'), { recursive: true }).filter((file) =>
  file.endsWith('.internals.js'),
);
const exported = await Promise.all(internals.map((file) => import(`../dist/libs/${file}`)));
const reaches = exported.flatMap((each) => Object.values(each)).filter((each) => typeof each?.check === 'function');
const reachesPage = join(root, 'docs/dependencies.md');
writeFileSync(reachesPage, withReachesTable(readFileSync(reachesPage, 'utf8'), reaches));

const alerts = readFileSync(join(root, 'ops/prometheus/alerts.yaml'), 'utf8');
writeFileSync(join(root, 'ops/kubernetes/monitoring/prometheus-rule.yaml'), prometheusRule(alerts));

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, type Program, startProgram } from '../support/programs.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { send } from '../support/load.js';
import { createOwnDatabase } from '../support/own-database.js';
import { until } from '../support/until.js';
import { petstoreCommand } from './support/petstore-command.js';

/*
 * The shipped alerts in a real Prometheus, with the scrape interval that they ask for, beside an outage of PostgreSQL of four
 * minutes: longer than any key is remembered. Debian's package `prometheus` contains Prometheus.
 */

const OUTAGE_MS = 240_000;
import.meta.jest.setTimeout(OUTAGE_MS + 180_000);

const METRICS_TOKEN = 'the-token-of-prometheus-in-an-outage';
const ALERTS = join(import.meta.dirname, '../../ops/prometheus/alerts.yaml');

let directory: string;
let server: PostgresqlServer;
let service: ServiceProcess;
let prometheus: Program;
let prometheusOrigin: string;
let petstore: { origin: string; apiKey: string };
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-alerts-'));
  server = await startPostgresqlServer();
  const settings = { DATABASE_URL: await createOwnDatabase(server, 'petstore'), METRICS_TOKEN };
  service = new ServiceProcess(settings, directory);
  const origin = await service.origin();
  const command = 'keys create --client reader --quiet';
  petstore = { origin, apiKey: (await petstoreCommand(directory, settings, ...command.split(' '))).stdout.trim() };
  const job = {
    job_name: 'petstore',
    authorization: { credentials: METRICS_TOKEN },
    static_configs: [{ targets: [new URL(origin).host] }],
  };
  const file = join(directory, 'prometheus.yaml');
  // YAML contains JSON.
  const global = { scrape_interval: '15s', evaluation_interval: '5s' };
  await writeFile(file, JSON.stringify({ global, rule_files: [ALERTS], scrape_configs: [job] }));
  const port = await freePort();
  prometheusOrigin = `http://127.0.0.1:${port}`;
  const options = {
    'config.file': file,
    'storage.tsdb.path': join(directory, 'data'),
    'web.listen-address': `127.0.0.1:${port}`,
  };
  prometheus = await startProgram(
    'prometheus',
    Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    port,
  );
}, 120_000);
afterAll(async () => {
  await prometheus.stop();
  await service.kill();
  await server.stop();
  await rm(directory, { recursive: true });
});

interface Alert {
  readonly state: 'pending' | 'firing';
  readonly labels: { readonly alertname: string };
}

/** The names of the alerts that wake somebody now. */
async function firing(): Promise<string[]> {
  const { data } = (await (await fetch(`${prometheusOrigin}/api/v1/alerts`)).json()) as { data: { alerts: Alert[] } };
  return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
}

test('an outage of the database fires PetstoreDatabaseAway, which ends with it, and never PetstoreDown', async () => {
  // A service that has been scraped.
  await until(async () => {
    const answer = await fetch(`${prometheusOrigin}/api/v1/query?query=up`);
    return /"value":\[[\d.]+,"1"\]/.test(await answer.text());
  });
  await server.shutDown();
  const fired = new Set<string>();
  for (const end = performance.now() + OUTAGE_MS; performance.now() < end; await sleep(1000)) {
    const { status } = await send({ method: 'GET', path: '/v1/pets' }, petstore);
    expect(status).toBe(503);
    for (const name of await firing()) fired.add(name);
  }
  expect(await firing()).toContain('PetstoreDatabaseAway');
  expect(fired).not.toContain('PetstoreDown');
  await server.start();
  for (const end = performance.now() + 120_000; (await firing()).includes('PetstoreDatabaseAway'); await sleep(1000)) {
    expect(performance.now()).toBeLessThan(end);
  }
});

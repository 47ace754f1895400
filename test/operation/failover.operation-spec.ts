import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseUrl } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, tally } from '../support/load.js';
import { createOwnDatabase, petsOf } from '../support/own-database.js';
import { freePort, HAPROXY, type Proxy, startProxy } from './support/proxies.js';
import { balance, creation, NOTHING_WRONG, untilItWorks } from '../support/witness.js';

/* Two instances behind HAProxy lose their database for some seconds, as in a failover. */

const API_KEY = 'bootstrap-key-of-the-tests';

import.meta.jest.setTimeout(120_000);

let home: string;
let server: PostgresqlServer;
let proxy: Proxy | undefined;
const services: ServiceProcess[] = [];

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  server = await startPostgresqlServer({ synchronous_commit: 'on' });
});
afterAll(async () => {
  await proxy?.stop();
  for (const service of services) await service.kill();
  await server.stop();
  rmSync(home, { recursive: true, force: true });
});

test('clients of HAProxy get 503 answers of the service, as JSON with Retry-After, and none of the proxy', async () => {
  const url = await createOwnDatabase(server, 'petstore');
  const ports = [await freePort(), await freePort()];
  for (const port of ports) {
    const own = { BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' };
    const service = new ServiceProcess({ DATABASE_URL: url, PORT: String(port), ...own }, home);
    services.push(service);
    await service.origin();
  }
  proxy = await startProxy(HAPROXY, ports);
  const target = { origin: proxy.origin, apiKey: API_KEY };
  await untilItWorks({ method: 'GET', path: '/v1/pets' }, target);
  const load = new Load({
    ...target,
    clients: 8,
    next: (index) => (index % 2 === 0 ? { method: 'GET', path: '/v1/pets?limit=5' } : creation(`failover-${index}`)),
    pauseMs: 10,
  });
  await sleep(1_000);
  await server.crash();
  // Long enough for many health checks of the proxy.
  await sleep(4_000);
  await server.start();
  await untilItWorks(creation('after-1'), target);
  await sleep(500);
  const outcomes = await load.stop();
  report('a failover behind haproxy', tally(outcomes));
  expect(Object.keys(tally(outcomes))).toEqual(['200', '201', '503']);
  for (const { status, headers, text } of outcomes) {
    if (status !== 503) continue;
    expect([headers['retry-after'], headers['content-type']]).toEqual(['1', 'application/json']);
    expect(JSON.parse(text)).toMatchObject({ code: 'unavailable', status: 503 });
  }
  const rows = await petsOf(databaseUrl(server.url, 'petstore'), 'failover');
  expect(balance(outcomes, rows)).toMatchObject(NOTHING_WRONG);
});

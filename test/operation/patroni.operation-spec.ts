import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseUrl } from '../support/postgresql-database.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, type LoadRequest, type Outcome, percentile, tally } from '../support/load.js';
import { createOwnDatabase, petsOf } from '../support/own-database.js';
import { type MemberName, PatroniCluster } from './support/patroni.js';
import { freePort } from '../support/programs.js';
import { type Proxy, startProxy } from './support/haproxy.js';
import { balance, creation, NOTHING_WRONG, PersistentClient, type Target, untilItWorks } from '../support/witness.js';

/*
 * The example of ops/patroni: three members of Patroni, etcd and HAProxy, all from their packages. Two instances of the
 * service reach the primary through HAProxy. Another HAProxy, configured as in docs/operating.md, is in
 * front of both instances.
 */

const API_KEY = 'bootstrap-key-of-the-tests';

/** Longest failover in ms: `ttl` and `loop_wait` of ops/patroni/patroni.yml, and 10 s for starts and new connections. */
const FAILOVER_MS = 20_000 + 5_000 + 10_000;

import.meta.jest.setTimeout(240_000);

let home: string;
let cluster: PatroniCluster;
let proxy: Proxy;
const services: ServiceProcess[] = [];
const targets: Record<string, Target> = {};

async function startService(name: string): Promise<number> {
  const port = await freePort();
  const own = {
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'warn',
    PORT: String(port),
  };
  const service = new ServiceProcess({ ...cluster.settings('haproxy.env'), ...own }, home);
  services.push(service);
  targets[name] = { origin: await service.origin(), apiKey: API_KEY };
  return port;
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  cluster = await PatroniCluster.start();
  await createOwnDatabase({ url: await cluster.leaderUrl() }, 'petstore');
  const ports = [await startService('one'), await startService('other')];
  proxy = await startProxy(ports);
  targets.both = { origin: proxy.origin, apiKey: API_KEY };
  await untilItWorks({ method: 'GET', path: '/v1/pets' }, targets.both);
});

afterAll(async () => {
  await proxy?.stop();
  for (const service of services) await service.kill();
  await cluster?.stop();
  rmSync(home, { recursive: true, force: true });
});

test.each<[name: string, fault: (leader: MemberName) => Promise<unknown>, longestMs: number]>([
  ['switchover', () => cluster.switchover(), 15_000],
  ['kill', (leader) => cluster.kill(leader), FAILOVER_MS],
])(
  '%s of the leader: clients get success or our 503, and no pet is lost or doubled',
  async (name, fault, longestMs) => {
    // Patroni promotes only a synchronous standby, so wait until there is one.
    await cluster.untilComplete();
    const leader = await cluster.leader();
    const writers = Object.entries(targets).flatMap(([way, target]) =>
      [1, 2].map((number) => new PersistentClient(`${name}-${way}-${number}`, () => [target])),
    );
    const next = (): LoadRequest => ({ method: 'GET', path: '/v1/pets?limit=5' });
    const readers = Object.values(targets).map((target) => new Load({ ...target, clients: 2, next, pauseMs: 20 }));
    await sleep(2_000);
    const from = performance.now();
    let read: Outcome[];
    try {
      await fault(leader);
      await cluster.untilLeaderIsNot(leader);
      for (const [way, target] of Object.entries(targets)) {
        await untilItWorks(creation(`after-${way}-1`), target, longestMs);
      }
      await sleep(2_000);
    } finally {
      await Promise.all(writers.map((writer) => writer.stop()));
      read = (await Promise.all(readers.map((reader) => reader.stop()))).flat();
      if (name === 'kill') cluster.restart(leader);
    }

    const written = writers.flatMap(({ outcomes }) => outcomes);
    const answers = [...written, ...read];
    const failed = answers.filter(({ status }) => status !== 200 && status !== 201);
    const recoveredMs = Math.max(0, ...failed.map(({ startedAt }) => startedAt - from));
    report(`${name} with patroni`, {
      ...tally(answers),
      'recovered after ms': Math.round(recoveredMs),
      'slowest response ms': Math.round(percentile(answers, 1)),
    });
    expect(failed.length).toBeGreaterThan(0);
    for (const { status, failure, headers, text } of failed) {
      const answer = { status, failure, retryAfter: headers['retry-after'], type: headers['content-type'] };
      expect(answer).toEqual({ status: 503, failure: undefined, retryAfter: '1', type: 'application/json' });
      expect(JSON.parse(text)).toMatchObject({ code: 'unavailable', status: 503 });
    }
    expect(recoveredMs).toBeLessThan(longestMs);
    const acknowledged = written.filter(({ status }) => status === 201);
    const rows = await petsOf(databaseUrl(await cluster.leaderUrl(), 'petstore'), name);
    expect(balance(acknowledged, rows)).toMatchObject({ ...NOTHING_WRONG, acknowledged: rows.length });

    // The former leader follows the new one.
    await cluster.untilComplete();
  },
);

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { Services } from '../operation/support/services.js';
import type { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { Load, type Outcome, percentile, tally } from '../support/load.js';
import { petsOf, useOwnServer } from '../support/own-database.js';
import { balance, creation, NOTHING_WRONG, type PetRow } from '../support/witness.js';

/*
 * PostgreSQL, or the service with the embedded engine, is killed by SIGKILL while clients create pets. Afterwards every
 * acknowledged pet is stored, once and as it was sent. idempotency.fault-spec.ts kills the service on PostgreSQL.
 */

const API_KEY = 'bootstrap-key-of-the-tests';
const ROUNDS = 10;
const CLIENTS = 10;

/** Settings of a server that must lose no acknowledged change. */
const DURABLE = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' };

import.meta.jest.setTimeout(300_000);

const own = useOwnServer(DURABLE);
const services = new Services(() => ({ BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' }));
let service: ServiceProcess;

/** Starts the service and returns its address. */
function start(settings: Record<string, string>): Promise<string> {
  service = services.start(settings);
  return service.origin();
}

/**
 * Lets clients create pets continuously while something crashes and restarts, `ROUNDS` times.
 *
 * @param crash crashes and restarts the service or PostgreSQL, and returns the service's address
 * @param readRows reads all stored pets at the end
 */
async function rounds(
  name: string,
  firstOrigin: string,
  crash: () => Promise<string>,
  readRows: () => Promise<PetRow[]>,
): Promise<readonly Outcome[]> {
  let origin = firstOrigin;
  const load = new Load({
    origin: () => origin,
    apiKey: API_KEY,
    clients: CLIENTS,
    next: (index) => creation(`pet-${index}`),
    pauseMs: 5,
  });
  const untilCreated = async (since: number): Promise<void> => {
    const deadline = performance.now() + 60_000;
    // The newest outcomes are last.
    while (!load.outcomes.slice(-CLIENTS * 20).some(({ status, startedAt }) => status === 201 && startedAt >= since)) {
      if (performance.now() > deadline)
        throw new Error(`Nothing is created any more:\n${service.stderr}${service.stdout}`);
      await sleep(5);
    }
  };
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await untilCreated(performance.now());
      // A random pause makes crashes happen at different moments of a batch.
      await sleep(100 + Math.random() * 200);
      origin = await crash();
      await untilCreated(performance.now());
    }
  } finally {
    await load.stop();
  }
  const { outcomes } = load;
  const rows = await readRows();
  const made = balance(outcomes, rows);
  const answered = outcomes.filter(({ status }) => status !== undefined);
  report(name, { ...tally(outcomes), ...made, 'slowest response in ms': Math.round(percentile(answered, 1)) });
  expect(made).toMatchObject(NOTHING_WRONG);
  expect(made.acknowledged).toBeGreaterThan(ROUNDS * CLIENTS);
  expect(rows.length).toBe(made.acknowledged + made.unacknowledgedButThere);
  expect(answered.filter(({ status }) => status !== 201 && status !== 503)).toEqual([]);
  return outcomes;
}

test('no acknowledged pet is lost when all of PostgreSQL is killed, and the service recovers by itself', async () => {
  const { server, url } = own;
  const origin = await start({ DATABASE_URL: url });
  const { pid } = service;
  const crash = async (): Promise<string> => {
    await server.crash();
    await server.start();
    return origin;
  };
  const outcomes = await rounds('PostgreSQL killed', origin, crash, () => petsOf(url, 'pet'));
  // The same process survived and responded to every request.
  expect([service.pid, service.isRunning]).toEqual([pid, true]);
  expect(outcomes.filter(({ failure }) => failure !== undefined)).toEqual([]);
  expect(service.stderr).toMatch(
    /^The Pet Store Service listens on \S+\nTo make an API key: .+\nDocumentation: \S+\n$/,
  );
});

test('no acknowledged pet is lost when the service is killed, on the embedded engine', async () => {
  const settings = { DATA_DIR: join(services.home, 'data') };
  const crash = async (): Promise<string> => {
    expect(await service.stop('SIGKILL')).toBeNull();
    return start(settings);
  };
  await rounds('service killed, embedded engine', await start(settings), crash, async () => {
    expect(await service.stop('SIGTERM')).toBe(0);
    const dataSource = await openDatabase(readConfig(settings), MIGRATIONS);
    const rows: { id: string; name: string; category: string; status: string }[] = await dataSource.query(
      'SELECT id::text, name, category_id::text AS category, status::text FROM pet',
    );
    await dataSource.destroy();
    return rows.map(({ id, name, category, status }) => [id, name, category, status]);
  });
});

import { tmpdir } from 'node:os';
import { administer } from '../support/postgresql-database.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import type { Outcome } from '../support/load.js';
import { petsOf, rowsOf, useOwnServer } from '../support/own-database.js';
import { balance, NOTHING_WRONG, PersistentClient, type Target } from '../support/witness.js';
import { until } from '../support/until.js';

/*
 * Clients retry each request with its key until they get 201, while instances are killed by SIGKILL and PostgreSQL ends
 * their connections.
 */

const API_KEY = 'idempotency-faults-key';
const CLIENTS = 16;
/** Number of faults, alternately a killed instance and ended connections. */
const FAULTS = 20;
/** Pets that must be acknowledged before each next step, so that every fault happens under load. */
const PETS_BETWEEN_FAULTS = 40;
/** Every fifth request is sent to both instances at the same moment. */
const HEDGED = 5;

const own = useOwnServer();
const instances: (ServiceProcess | undefined)[] = [];
const origins: (string | undefined)[] = [];

async function start(index: number): Promise<void> {
  const settings = {
    DATABASE_URL: own.url,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'error',
  };
  const instance = new ServiceProcess(settings, tmpdir());
  instances[index] = instance;
  origins[index] = await instance.origin();
}

beforeAll(async () => {
  await start(0);
  await start(1);
  // Slow statements: at every fault some are running, and some are committed but without a response yet.
  await administer(
    own.superUrl,
    `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NULL; END';
    CREATE TRIGGER linger AFTER INSERT ON pet FOR EACH STATEMENT EXECUTE FUNCTION linger()`,
  );
}, 90_000);

afterAll(async () => {
  for (const instance of instances) await instance?.kill();
});

/** The instances for an attempt: one after the other, or both. */
function targetsOf(pet: number, attempt: number): Target[] {
  const indexes = pet % HEDGED === 0 ? [0, 1] : [(pet + attempt) % 2];
  // A killed instance has no address. Port 1 refuses the connection, as a load balancer without instances does.
  return indexes.map((index) => ({ origin: origins[index] ?? 'http://127.0.0.1:1', apiKey: API_KEY }));
}

test('each key creates exactly one pet, and every acknowledged pet is stored, despite kills and ended connections', async () => {
  const clients = Array.from({ length: CLIENTS }, (_, index) => new PersistentClient(`key-${index}`, targetsOf));
  const acknowledged = (): Outcome[] =>
    clients.flatMap(({ outcomes }) => outcomes).filter(({ status }) => status === 201);
  const untilMore = async (): Promise<unknown> => {
    const enough = acknowledged().length + PETS_BETWEEN_FAULTS;
    return until(() => acknowledged().length >= enough);
  };
  for (let fault = 0; fault < FAULTS; fault++) {
    await untilMore();
    if (fault % 2 === 0) {
      const index = (fault / 2) % 2;
      await instances[index]?.kill();
      origins[index] = undefined;
      await untilMore();
      await start(index);
    } else {
      const connections = `FROM pg_stat_activity WHERE application_name = 'petstore'`;
      await administer(own.superUrl, `SELECT pg_terminate_backend(pid) ${connections}`);
    }
  }
  await untilMore();
  await Promise.all(clients.map((client) => client.stop()));

  const outcomes = clients.flatMap((client) => client.outcomes);
  const wrong = outcomes.filter(({ status }) => status !== undefined && status !== 201 && status !== 503);
  expect(wrong).toEqual([]);
  const rows = await petsOf(own.superUrl, 'key');
  expect(balance(acknowledged(), rows)).toMatchObject(NOTHING_WRONG);
  expect(rows.length).toBe(new Set(acknowledged().map(({ request }) => request.body)).size);
  // An earlier attempt at one instance has succeeded, but its response was lost.
  const retried = acknowledged().filter(
    ({ request, headers }) =>
      headers['idempotent-replayed'] === 'true' && Number(/-(\d+)"/.exec(request.body ?? '')?.[1]) % HEDGED !== 0,
  );
  report('idempotency', { keys: rows.length, attempts: outcomes.length, 'settled by a retry': retried.length });
  // Without one, this run would have tested nothing.
  expect(retried.length).toBeGreaterThan(0);
  expect(await rowsOf(own.superUrl, 'SELECT count(*)::int FROM idempotency_key')).toEqual([[rows.length]]);
}, 600_000);

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { databaseUrl } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { send } from '../support/load.js';
import { createOwnDatabase } from '../support/own-database.js';

/*
 * Clients retry each request with its key until they get 201, while instances are killed by SIGKILL and PostgreSQL ends
 * their connections.
 */

const API_KEY = 'idempotency-faults-key';
const CLIENTS = 16;
/** Number of faults, alternately a killed instance and ended connections. */
const FAULTS = 20;
/** Keys that must be answered before each next step, so that every fault happens under load. */
const KEYS_BETWEEN_FAULTS = 40;
/** Attempts after which a client gives up: far more than any fault needs. */
const MAX_ATTEMPTS = 2_000;
const ATTEMPT_TIMEOUT_MS = 20_000;
const RETRY_PAUSE_MS = 20;
/** Every fifth key is sent to both instances at the same time. */
const HEDGED = 5;

/** A key and the responses to its client. */
interface Order {
  readonly key: string;
  readonly answers: Set<string>;
  attempts: number;
  /** Whether the first response that arrived was a replay: an earlier attempt succeeded, but its response was lost. */
  wasSettledByRetry: boolean;
}

let directory: string;
let server: PostgresqlServer;
let serviceUrl: string;
/** As superuser, who may end the connections of others. */
let database: pg.Client;
const instances: (ServiceProcess | undefined)[] = [];
const origins: (string | undefined)[] = [];

async function start(index: number): Promise<void> {
  const settings = {
    DATABASE_URL: serviceUrl,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'error',
  };
  const instance = new ServiceProcess(settings, directory);
  instances[index] = instance;
  origins[index] = await instance.origin();
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-faults-'));
  server = await startPostgresqlServer();
  serviceUrl = await createOwnDatabase(server, 'petstore');
  database = new pg.Client({ connectionString: databaseUrl(server.url, 'petstore') });
  await database.connect();
  await start(0);
  await start(1);
  // Slow statements: at every fault some are running, and some are committed but without a response yet.
  await database.query(`
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NULL; END';
    CREATE TRIGGER linger AFTER INSERT ON pet FOR EACH STATEMENT EXECUTE FUNCTION linger()`);
}, 90_000);

afterAll(async () => {
  for (const instance of instances) await instance?.kill();
  await database?.end();
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
});

const orders: Order[] = [];
let answered = 0;
let stopped = false;

/** A client: sends each key until it gets 201, then the next one. */
async function order(): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  while (!stopped) {
    const index = orders.length;
    const one: Order = { key: randomUUID(), answers: new Set(), attempts: 0, wasSettledByRetry: false };
    orders.push(one);
    while (one.answers.size === 0) {
      if (one.attempts > MAX_ATTEMPTS) throw new Error(`No response after ${one.attempts} attempts: ${one.key}`);
      const both = index % HEDGED === 0 ? [0, 1] : [(index + one.attempts) % 2];
      const replayed = await Promise.all(both.map((instance) => attempt(one, instance, agent)));
      one.wasSettledByRetry = both.length === 1 && replayed[0] === 'true';
      if (one.answers.size === 0) await sleep(RETRY_PAUSE_MS);
    }
    answered++;
    // Like an uncertain client, ask once more, at the other instance.
    if (index % 3 === 0) expect(['true', 'no response']).toContain(await attempt(one, (index + 1) % 2, agent));
  }
  agent.destroy();
}

/** Sends a key once, and returns whether the response is a replay, as its header field says. */
async function attempt(one: Order, instance: number, agent: Agent): Promise<string | undefined> {
  one.attempts++;
  const body = `{"name":"${one.key}","categoryId":9223372036854775807}`;
  const { status, failure, headers, text } = await send(
    { method: 'POST', path: '/v1/pets', headers: { 'idempotency-key': `"${one.key}"` }, body },
    // A killed instance has no address. Port 1 refuses the connection, as a load balancer without instances does.
    { origin: origins[instance] ?? 'http://127.0.0.1:1', apiKey: API_KEY, timeoutMs: ATTEMPT_TIMEOUT_MS },
    agent,
  );
  if (status === 503 || failure !== undefined) return 'no response';
  if (status !== 201) throw new Error(`${status} ${text}`);
  one.answers.add(`${text} ${String(headers['location'])}`);
  return headers['idempotent-replayed'] as string | undefined;
}

async function untilAnswered(count: number, clients: Promise<unknown>): Promise<void> {
  // The error of a client must end the test, which otherwise would wait for that client.
  const failed = clients.then(
    () => undefined,
    (error: Error) => error,
  );
  while (answered < count) {
    const error = await Promise.race([failed, sleep(5, null)]);
    if (error instanceof Error) throw error;
  }
}

test('each key creates exactly one pet, and every acknowledged pet is stored, despite kills and ended connections', async () => {
  const clients = Promise.all(Array.from({ length: CLIENTS }, order));
  for (let fault = 0; fault < FAULTS; fault++) {
    await untilAnswered(answered + KEYS_BETWEEN_FAULTS, clients);
    if (fault % 2 === 0) {
      const index = (fault / 2) % 2;
      await instances[index]?.kill();
      origins[index] = undefined;
      await untilAnswered(answered + KEYS_BETWEEN_FAULTS, clients);
      await start(index);
    } else {
      const connections = `FROM pg_stat_activity WHERE application_name = 'petstore'`;
      await database.query(`SELECT pg_terminate_backend(pid) ${connections}`);
    }
  }
  await untilAnswered(answered + KEYS_BETWEEN_FAULTS, clients);
  stopped = true;
  await clients;

  const { rows } = await database.query<{ id: string; name: string }>('SELECT id::text, name FROM pet');
  const answers = orders.map(({ key, answers: [answer, ...others] }) => [key, answer, ...others]);
  const stored = rows.map(({ id, name }) => [
    name,
    `{"id":${id},"name":"${name}","categoryId":9223372036854775807,"status":"available"} ` +
      `http://localhost:3000/v1/pets/${id}`,
  ]);
  expect(stored.sort()).toEqual(answers.sort());
  const retried = orders.filter(({ wasSettledByRetry }) => wasSettledByRetry).length;
  const attempts = orders.reduce((sum, one) => sum + one.attempts, 0);
  report('idempotency', { keys: orders.length, attempts, 'settled by a retry': retried });
  // Without a lost response to a successful attempt, this run would have tested nothing.
  expect(retried).toBeGreaterThan(0);
  const keys = await database.query<{ count: number }>('SELECT count(*)::int FROM idempotency_key');
  expect(keys.rows[0]?.count).toBe(orders.length);
}, 600_000);

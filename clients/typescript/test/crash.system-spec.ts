import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.js';
import { ServiceProcess } from '../../../test/support/service-process.js';
import { type Pet, PetStoreClient } from '../src/index.js';

/*
 * The service is killed by SIGKILL while clients create pets, and restarts on the same port. The clients only call
 * createPet. Each call must return the one pet that it asked for.
 */

const API_KEY = 'a-key-for-the-test-of-crashes';
const CLIENTS = 16;
const CRASHES = 5;
/** Number of pets that are created between two crashes, so that every crash happens under load. */
const BETWEEN_CRASHES = 40;

import.meta.jest.setTimeout(120_000);

let directory: string;
let database: TestDatabase;
let sql: pg.Client;
let service: ServiceProcess;
let port = '0';

async function start(): Promise<string> {
  const settings = {
    ...database.settings,
    BOOTSTRAP_API_KEY: API_KEY,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'error',
    PORT: port,
  };
  service = new ServiceProcess(settings, directory);
  const origin = await service.origin();
  ({ port } = new URL(origin));
  return origin;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-client-crash-'));
  database = await createTestDatabase();
  sql = new pg.Client({ connectionString: database.ownerSettings['DATABASE_URL'] });
  await sql.connect();
  // Inserts take 10 ms, so that a crash interrupts some of them and loses the responses to others.
  await sql.query(`
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NULL; END';
    CREATE TRIGGER linger AFTER INSERT ON pet FOR EACH STATEMENT EXECUTE FUNCTION linger()`);
});

afterAll(async () => {
  await service?.kill();
  await sql?.end();
  await database?.drop();
  await rm(directory, { recursive: true, force: true });
});

test('crashes of the service double or lose no pet, and fail no call', async () => {
  let attempts = 0;
  let replayed = 0;
  const counting: typeof fetch = async (input, init) => {
    attempts++;
    const response = await fetch(input, init);
    if (response.headers.has('idempotent-replayed')) replayed++;
    return response;
  };
  const client = new PetStoreClient({
    baseUrl: `${await start()}/v1`,
    apiKey: API_KEY,
    fetch: counting,
    maxAttempts: 100,
  });

  const created: Pet[] = [];
  let calls = 0;
  let stopped = false;
  const create = async (): Promise<void> => {
    while (!stopped) {
      const name = `Pet ${++calls}`;
      created.push(await client.createPet({ name, categoryId: 9007199254740993n + BigInt(calls) }));
    }
  };
  const work = Promise.all(Array.from({ length: CLIENTS }, create));
  for (let crash = 1; crash <= CRASHES; crash++) {
    while (created.length < crash * BETWEEN_CRASHES) await Promise.race([work, sleep(1)]);
    await service.kill();
    await start();
  }
  stopped = true;
  await work;

  const { rows } = await sql.query<[string, string, string, string]>({
    text: 'SELECT id::text, name, category_id::text, status::text FROM pet ORDER BY pet.id',
    rowMode: 'array',
  });
  const expected = created
    .sort((one, other) => Number(one.id - other.id))
    .map(({ id, name, categoryId, status }) => [String(id), name, String(categoryId), status]);
  expect(created).toHaveLength(calls);
  expect(rows).toEqual(expected);
  process.stderr.write(`FIGURES crash: pets ${calls}, attempts ${attempts}, replayed ${replayed}\n`);
  expect(attempts).toBeGreaterThan(calls);
});

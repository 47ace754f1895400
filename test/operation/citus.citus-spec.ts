import { readFileSync } from 'node:fs';
import { PET_STORE } from '../../src/app.description.js';
import { migrateDatabase } from '../kit/test-database.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { judgeApp } from '../support/judge-app.js';
import { type LoadRequest, type Outcome, send } from '../support/load.js';
import { rowsOf } from '../support/own-database.js';
import { administer, databaseUrl } from '../support/postgresql-database.js';
import { createDatabaseWithRoles } from '../support/postgresql-roles.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { creation, NOT_DONE, OUTCOME_UNKNOWN, untilItWorks } from '../support/witness.js';

/* The layout of ops/citus: a coordinator and two workers of the installation that `.ci/citus` makes. */

import.meta.jest.setTimeout(240_000);

const SETTINGS = {
  shared_preload_libraries: 'citus',
  wal_level: 'logical',
  max_prepared_transactions: '100',
  'citus.local_hostname': '127.0.0.1',
  // Without TLS they look for no certificates in the home of the user of the tests.
  'citus.node_conninfo': 'sslmode=disable',
};

const machines: PostgresqlServer[] = [];
let coordinator: string;
let worker: PostgresqlServer;
let app: TestApp;

const portOf = ({ url }: PostgresqlServer): string => new URL(url).port;

beforeAll(async () => {
  for (let index = 0; index < 3; index++)
    machines.push(await startPostgresqlServer(SETTINGS, undefined, process.env.CITUS_INSTALLATION));
  const urls = [];
  for (const { url } of machines) {
    urls.push(await createDatabaseWithRoles(url, 'petstore'));
    const database = databaseUrl(url, 'petstore');
    await administer(database, 'CREATE EXTENSION citus');
    // In place of ~/.pgpass: the passwords with which the machines log in to each other.
    await administer(
      database,
      `INSERT INTO pg_dist_authinfo VALUES (0, 'postgres', 'password=petstore'),
         (0, 'petstore_owner', 'password=secret-of-the-owner'), (0, 'petstore_service', 'password=secret-of-the-service')`,
    );
  }
  const [first, ...workers] = machines as [PostgresqlServer, PostgresqlServer, PostgresqlServer];
  worker = workers[1];
  coordinator = databaseUrl(first.url, 'petstore');
  const [{ ownerUrl, serviceUrl }] = urls as [(typeof urls)[number]];
  await migrateDatabase(PET_STORE, { DATABASE_URL: ownerUrl });
  const layout = machines.reduce(
    (sql, machine, index) => sql.replaceAll(`'10.0.0.1${index}', 5432`, `'127.0.0.1', ${portOf(machine)}`),
    readFileSync(new URL('../../ops/citus/layout.sql', import.meta.url), 'utf8'),
  );
  for (const statement of layout.split(/;$/m)) await administer(coordinator, statement);
  const database = {
    settings: { DATABASE_URL: serviceUrl },
    ownerSettings: { DATABASE_URL: ownerUrl },
    drop: () => Promise.resolve(),
  };
  app = await createTestApp({ database, settings: { REQUEST_TIMEOUT_MS: '1500' } });
});

afterAll(async () => {
  await app?.close();
  for (const machine of machines) await machine.stop();
});

const LIST: LoadRequest = { method: 'GET', path: '/v1/pets' };

const keyed = (name: string): LoadRequest => ({ ...creation(name), headers: { 'idempotency-key': name } });

const ask = (request: LoadRequest): Promise<Outcome> => send(request, app);

const answerOf = ({ status, text }: Outcome): unknown[] => [status, (JSON.parse(text) as { code?: string }).code];

test('every row of the contract holds', async () => {
  const shards = 'SELECT DISTINCT nodeport::text FROM citus_shards ORDER BY 1';
  expect(await rowsOf(coordinator, shards)).toEqual(
    machines
      .slice(1)
      .map((machine) => [portOf(machine)])
      .sort(),
  );
  const { failures, leftOut } = await judgeApp(app);
  expect([failures, leftOut]).toEqual([[], []]);
});

test('a lost worker: lists and keyed creates get 503, the log names it, and all works when it is back', async () => {
  await worker.crash();
  expect(answerOf(await ask(LIST))).toEqual([503, 'unavailable']);
  expect(answerOf(await ask(keyed('lost-1')))).toEqual([503, 'unavailable']);
  expect(app.log.lines.some((line) => JSON.stringify(line).includes(`127.0.0.1:${portOf(worker)}`))).toBe(true);
  await worker.start();
  await untilItWorks(LIST, app);
  expect((await untilItWorks(keyed('lost-1'), app)).status).toBe(201);
});

test('a hung worker: what fails says that it may have been made, and a retry with the key makes no second', async () => {
  worker.suspend();
  const list = await ask(LIST);
  const names = ['hung-1', 'hung-2', 'hung-3', 'hung-4', 'hung-5', 'hung-6'];
  const outcomes = await Promise.all(names.flatMap((name) => [ask(keyed(name)), ask(creation(`${name}0`))]));
  worker.resume();
  expect([answerOf(list), list.text.includes('may have been made')]).toEqual([[500, 'took_too_long'], false]);
  // A create whose shards are all on the other worker succeeds.
  const failed = outcomes.filter(({ status }) => status !== 201);
  expect(failed.length).toBeGreaterThan(2);
  expect(failed.some(({ status }) => status === 500)).toBe(true);
  for (const { status, text } of failed) {
    const [code, message] = status === 500 ? ['took_too_long', OUTCOME_UNKNOWN] : ['unavailable', NOT_DONE];
    expect(JSON.parse(text)).toMatchObject({ code, message: expect.stringMatching(message) as unknown });
  }
  await untilItWorks(LIST, app);
  for (const name of names) await untilItWorks(keyed(name), app);
  const stored = `SELECT name, count(*)::int FROM pet WHERE name IN ('${names.join(`', '`)}') GROUP BY name ORDER BY name`;
  expect(await rowsOf(coordinator, stored)).toEqual(names.map((name) => [name, 1]));
});

import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '#access';
import { Database, migrationStatus } from '#postgres';
import { type CommandContext } from '#service';
import { addKeyCommands } from '../../libs/commands/src/keys.js';
import { PET_STORE } from '../../src/app.description.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, engine, type TestDatabase } from '../support/database.js';
import { HOSTILE, setDefaults } from '../support/hostile-settings.js';

/*
 * The service keeps its promises whatever others set: PostgreSQL's settings of a role or database, pg's global parsers, and
 * times in the database that no JavaScript Date can hold.
 */

const DAY = 86_400_000;

const databases: TestDatabase[] = [];
const apps: TestApp[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
  for (const database of databases.splice(0)) await database.drop();
});

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  databases.push(database);
  return database;
}

async function start(database: TestDatabase): Promise<TestApp> {
  const app = await createTestApp({ database });
  apps.push(app);
  return app;
}

/** Runs `keys …` in this process, and returns what it prints. */
async function runKeys(app: TestApp, ...words: string[]): Promise<string> {
  let printed = '';
  const context: Partial<CommandContext> = {
    application: PET_STORE,
    print: (text) => void (printed += String(text)),
    with: (type, _, work) => work(app.nest.get(type)),
  };
  const program = new Command();
  addKeyCommands(program, context as CommandContext);
  await program.parseAsync(['keys', ...words], { from: 'user' });
  return printed;
}

function expectNear(time: Date | null | undefined, ms: number, tolerance = 10_000): void {
  expect(Math.abs((time as Date).getTime() - ms)).toBeLessThan(tolerance);
}

/** Expects what the service promises of pets, keys and migrations. */
async function expectPromises(app: TestApp, id = 2n ** 62n + 1n): Promise<void> {
  const { client, nest, clock } = app;
  await app.sql(`INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE VALUES ($1, '€ 😀', $1)`, [id]);
  const stored = `{"id":${id},"name":"€ 😀","categoryId":${id},"status":"available"}`;
  for (const path of [`/v1/pets/${id}`, `/v1/pets?limit=100`]) expect((await client.get(path)).text).toContain(stored);
  const pet = { name: '\\ü \'"😀', categoryId: 7 };
  expect((await client.post('/v1/pets', pet)).json).toMatchObject({ ...pet, status: 'available' });
  const headers = { 'idempotency-key': `key-${id}` };
  const [first, ...repeated] = await Promise.all([1, 2, 3, 4].map(() => client.post('/v1/pets', pet, { headers })));
  for (const { status, text } of repeated) expect([status, text]).toEqual([201, first?.text]);
  const replayed = await client.post('/v1/pets', pet, { headers });
  expect([replayed.status, replayed.text, replayed.headers['idempotent-replayed']]).toEqual([201, first?.text, 'true']);

  const keys = nest.get(ApiKeysService);
  const now = clock.now();
  const used = async (apiKey: string): Promise<unknown> => (await client.get('/v1/pets', { apiKey })).json.code;
  const future = new Date(now + DAY);
  const made = (expiresAt?: Date): ReturnType<typeof keys.create> => keys.create({ client: 'a', expiresAt });
  expect(await used((await made(new Date(now - 1_000))).secret)).toBe('expired_api_key');
  const { secret, key } = await made(future);
  expect([await used(secret), key.expiresAt, key.revokedAt]).toEqual([undefined, future, null]);
  expect(await used((await made()).secret)).toBeUndefined();
  const rotated = await keys.rotate(String(key.id), 1_000);
  expectNear(rotated.predecessor.expiresAt, clock.now() + 1_000);
  const lifetime = (rotated.key.expiresAt as Date).getTime() - rotated.key.createdAt.getTime();
  expect(lifetime).toBe(future.getTime() - key.createdAt.getTime());
  const revoked = await keys.revoke(String(rotated.key.id), 'lost');
  expectNear(revoked.revokedAt, clock.now());
  expect(await used(rotated.secret)).toBe('revoked_api_key');
  expect((await keys.list()).filter(({ revokedAt }) => revokedAt !== null).at(-1)?.id).toBe(revoked.id);

  for (const { appliedAt, isKnown } of await migrationStatus(nest.get(DataSource))) {
    expect(isKnown).toBe(true);
    expectNear(appliedAt, Date.now(), DAY);
  }
  expect((await client.get('/health/ready')).status).toBe(200);
}

/** Sends requests with the same keys to two processes at once. Each waits for what the other has not committed yet. */
async function expectOnePetPerKey(...apps: TestApp[]): Promise<void> {
  for (let round = 0; round < 100; round++) {
    // One, too, which no batch repeats.
    const keys = Array.from({ length: 1 + (round % 3) }, (_, index) => `shared-${round}-${index}`);
    const answers = await Promise.all(
      apps.map(({ client }, at) =>
        Promise.all(
          (at === 0 ? keys : keys.toReversed()).map(async (key) => {
            const headers = { 'idempotency-key': key };
            const { status, text } = await client.post('/v1/pets', { name: key, categoryId: 1 }, { headers });
            return `${key} ${status} ${text}`;
          }),
        ),
      ),
    );
    expect(answers[1]?.sort()).toEqual(answers[0]?.sort());
    expect(answers[0]?.filter((answer) => !answer.includes(' 201 '))).toEqual([]);
  }
}

test.each(['German', 'SQL, DMY', 'Postgres, MDY'])(
  'settings of the database, DateStyle %s: every promise holds, and modules read times',
  async (datestyle) => {
    const database = await newDatabase();
    await setDefaults(database, { ...HOSTILE, datestyle });
    const app = await start(database);
    await expectPromises(app);
    const read = `SELECT TIMESTAMPTZ '2026-02-01 00:00Z' AS at, NULLIF(ARRAY['a', NULL], NULL) AS list, current_setting('timezone') AS zone`;
    // The embedded engine starts with these two.
    const zone = engine === 'embedded' ? 'UTC' : HOSTILE['timezone'];
    const [row] = await app.nest.get(DataSource).query<unknown[]>(read);
    expect(row).toEqual({ at: new Date('2026-02-01T00:00:00Z'), list: ['a', null], zone });
    const [[order, day] = []] = await app.nest
      .get(Database)
      .read({ name: '', text: `SELECT current_setting('datestyle'), ('01/02/2026'::date - '2026-01-01')::int` }, []);
    expect([order, day]).toEqual(
      datestyle.endsWith('MDY') || engine === 'embedded' ? ['ISO, MDY', 1] : ['ISO, DMY', 31],
    );
    // Longer than lock_timeout and idle_session_timeout.
    const locked = app.sql(`DO $$ BEGIN LOCK TABLE pet IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(0.3); END $$`);
    await sleep(100);
    expect((await app.client.get('/v1/pets')).status).toBe(200);
    await locked;
    if (engine === 'postgresql') await expectOnePetPerKey(app, await start(database));
  },
);

describe('global parsers of pg', () => {
  const types = pg.types.builtins as Readonly<Record<string, number>>;
  const parsers = new Map(Object.values(types).map((type) => [type, pg.types.getTypeParser(type)]));
  afterEach(() => parsers.forEach((parser, type) => pg.types.setTypeParser(type, parser as (text: string) => unknown)));

  test('those of a module reach its own statements, and none of the platform', async () => {
    pg.types.setTypeParser(types.INT8 as number, BigInt);
    pg.types.setTypeParser(types.TIMESTAMPTZ as number, (text) => text);
    const app = await start(await newDatabase());
    await expectPromises(app);
    const [row] = await app.nest.get(DataSource).query<unknown[]>(`SELECT 1::bigint AS n, now() AS at`);
    expect(row).toEqual({ n: 1n, at: expect.any(String) as string });
    // Of every type, once TypeORM has read the version of PostgreSQL.
    for (const type of parsers.keys()) pg.types.setTypeParser(type, (text) => ({ foreign: text }) as never);
    await expectPromises(app, 2n ** 62n + 3n);
    // TypeORM reads the version again.
    pg.types.setTypeParser(types.TEXT as number, (text) => text);
  });
});

test('infinity is no end of a key, -infinity has passed, a revocation refuses whatever its time; keys show, list and rotate say so', async () => {
  const app = await start(await newDatabase());
  const keys = app.nest.get(ApiKeysService);
  const made = async (column: string, time: string): Promise<{ id: string; apiKey: string }> => {
    const { key, secret } = await keys.create({
      client: `${column} ${time}`,
      expiresAt: new Date(app.clock.now() + DAY),
    });
    await app.sql(`UPDATE api_key SET ${column} = $1 WHERE id = $2`, [time, key.id]);
    return { id: String(key.id), apiKey: secret };
  };
  for (const [column, time, code, valid, shown] of [
    ['expires_at', 'infinity', undefined, '-', 'expiresAt           -'],
    ['expires_at', '-infinity', 'expired_api_key', 'expired', 'expiresAt           -271821-04-20 00:00'],
    ['expires_at', '294000-01-01', undefined, '+275760-09-13', 'expiresAt           +275760-09-13 00:00'],
    ['expires_at', '12345-01-01 00:00+00', undefined, '+012345-01-01', 'expiresAt           +012345-01-01 00:00'],
    ['expires_at', '0044-03-15 00:00+00 BC', 'expired_api_key', 'expired', 'expiresAt           -000043-03-15 00:00'],
    ['revoked_at', 'infinity', 'revoked_api_key', 'revoked', 'revokedAt           +275760-09-13 00:00'],
    ['revoked_at', '-infinity', 'revoked_api_key', 'revoked', 'revokedAt           -271821-04-20 00:00'],
    ['created_at', 'infinity', undefined, expect.any(String) as string, 'createdAt           +275760-09-13 00:00'],
    ['created_at', '-infinity', undefined, expect.any(String) as string, 'createdAt           -271821-04-20 00:00'],
  ] as const) {
    const { id, apiKey } = await made(column, time);
    const { status, json } = await app.client.get('/v1/pets', { apiKey });
    expect([column, time, status, json.code]).toEqual([column, time, code ? 401 : 200, code]);
    const printed = await runKeys(app, 'show', id);
    expect(printed).toContain(shown);
    const line = (await runKeys(app, 'list')).split('\n').find((one) => one.startsWith(`${id} `));
    expect(line?.split(/ {2,}/)[3]).toEqual(valid);
    if (code !== undefined) continue;
    const before = await keys.find(id);
    const { key } = await keys.rotate(id);
    if (before.expiresAt === null) expect(key.expiresAt).toBeNull();
    else expect((key.expiresAt as Date).getTime()).toBeLessThanOrEqual(before.expiresAt.getTime() + 10_000);
  }
});

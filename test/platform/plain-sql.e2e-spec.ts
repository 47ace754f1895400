import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DataSource, type EntitySubscriberInterface, EventSubscriber } from 'typeorm';
import { judge } from '../../contract/judge.js';
import { PETS } from '../../contract/rows.js';
import { ApiKeysService } from '#access';
import { ExpiredKeys } from '../../libs/resources/src/idempotency/idempotency-key.repository.js';
import { PET_STORE } from '../../src/app.description.js';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { seedPets } from '../../src/pets/pets.seed.js';
import { createEmptyDatabase, migrateDatabase, type TestDatabase } from '../kit/test-database.js';
import { createTestApp, type TestApp, writeUsage } from '../support/app.js';
import { describeOnPostgresql } from '../support/database.js';
import { rowsOf } from '../support/own-database.js';
import { administer } from '../support/postgresql-database.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';

/*
 * Everything that the service sends to PostgreSQL, read from the log of a server of its own, except migrations: what
 * ops/citus/README.md says of the shape of our statements.
 */

import.meta.jest.setTimeout(120_000);

/** What the test calls of optional parts, which are loaded by computed paths: without them the rest must compile. */
interface KeyUsage {
  sumByClient(operation: string, since: string, days: number): Promise<unknown>;
  firstDay(): Promise<unknown>;
}
type Made<Instance> = new (...given: never[]) => Instance;
const load = async <Exports>(path: string): Promise<Exports> => (await import(`../../libs/${path}`)) as Exports;

/** An entity with a subscriber shares no statements: TypeORM makes those of its repository. */
@EventSubscriber()
class PetSubscriber implements EntitySubscriberInterface<PetEntity> {
  listenTo(): typeof PetEntity {
    return PetEntity;
  }
}

/** Begins each line of the log that begins an entry; further lines of an entry begin with a tab. */
const ENTRY = '@entry@';

describeOnPostgresql('the statements of the service', () => {
  let server: PostgresqlServer;
  let databases: TestDatabase[];
  let statements: string[];

  /** A migrated database whose statements are logged from then on. */
  async function createLogged(): Promise<TestDatabase> {
    const database = await createEmptyDatabase(server.url);
    await migrateDatabase(PET_STORE, database.ownerSettings);
    const name = new URL(database.settings['DATABASE_URL'] ?? '').pathname.slice(1);
    await administer(server.url, `ALTER DATABASE ${name} SET log_statement = 'all'`);
    return database;
  }

  /** Calls every operation, and what runs in the background. */
  async function use(app: TestApp): Promise<void> {
    const { KeyUsage } = await load<{ KeyUsage: Made<KeyUsage> }>('key-usage/src/key-usage.js');
    type Retention = { KeyUsageRetention: typeof ExpiredKeys };
    const { KeyUsageRetention } = await load<Retention>('key-usage/src/key-usage.module.js');
    const [keys, usage] = [app.nest.get(ApiKeysService), app.nest.get(KeyUsage)];
    const names = ['key', 'other', 'pets_read', 'pets_write', 'metrics_read', 'expired', 'revoked'];
    const variables = Object.fromEntries(names.map((name) => [name, app.apiKey]));
    await judge({ url: app.origin, variables: { ...variables, base: app.config.publicBaseUrl } }, PETS);
    const { key: made } = await keys.create({ client: 'another' });
    await keys.ensureBootstrapKey('a-bootstrap-key.of~our_own+form');
    await keys.list({ client: 'another' });
    await keys.rotate(String(made.id));
    await keys.revoke(String(made.id));
    await keys.ofClient('somebody');
    await keys.createFirstKey();
    await writeUsage(app);
    await usage.sumByClient('listPets', '2026-11-20', 30);
    await usage.firstDay();
    await app.sql(`UPDATE idempotency_key SET created_at = created_at - interval '2 days'`);
    await app.sql(`UPDATE key_usage SET day = day - 1000`);
    expect(await app.nest.get(ExpiredKeys).remove()).toBeGreaterThan(0);
    expect(await app.nest.get(KeyUsageRetention).remove()).toBeGreaterThan(0);
    await seedPets(app.nest.get(DataSource), 10, 10);
  }

  beforeAll(async () => {
    server = await startPostgresqlServer({ log_line_prefix: ENTRY });
    databases = [await createLogged(), await createLogged()];
    const [database] = databases as [TestDatabase, TestDatabase];
    for (const subscribers of [[], [PetSubscriber]]) {
      const app = await createTestApp({ database, typeorm: { subscribers } });
      await use(app);
      await app.close();
    }
    const log = readFileSync(join(dirname(server.data), 'log'), 'utf8');
    const sent = log
      .split(ENTRY)
      .flatMap((entry) => /^LOG: {2}(?:statement|execute [^:]*): ([^]*)/.exec(entry)?.[1] ?? []);
    statements = [...new Set(sent.map((text) => text.replace(/\s+/g, ' ').trim()))];
  }, 120_000);
  afterAll(() => server.stop());

  test('the log has the statements of every operation and background work', () => {
    const expected = [
      /^INSERT INTO "pet" .* RETURNING id/,
      /nextval\(.*ON CONFLICT \(client_id, key\) DO UPDATE/,
      /^INSERT INTO idempotency_key .* VALUES .*ON CONFLICT/,
      /^INSERT INTO key_usage .*ON CONFLICT/,
      /^DELETE FROM idempotency_key/,
      /^DELETE FROM key_usage/,
    ];
    expect(expected.filter((pattern) => !statements.some((text) => pattern.test(text)))).toEqual([]);
  });

  test('none names places of rows, changes a sequence, selects nothing, listens, or removes rows that it has locked first', () => {
    expect(statements.filter((text) => /\bctid\b|\bALTER SEQUENCE\b|\bSELECT FROM\b|^LISTEN\b/i.test(text))).toEqual(
      [],
    );
    expect(statements.filter((text) => /\bDELETE\b/.test(text) && /\bFOR (UPDATE|SHARE)\b/.test(text))).toEqual([]);
  });

  test('ON CONFLICT sets and compares values by functions alone that PostgreSQL marks as immutable', async () => {
    const owner = databases[0]?.ownerSettings['DATABASE_URL'] ?? '';
    /** PostgreSQL's refusal of a condition on a row and the one in its way, as it refuses it for an index; undefined for none. */
    const refusalOf = async (table: string, condition: string): Promise<string | undefined> => {
      const own = condition.replace(new RegExp(`(?<!\\.)\\b(${table}|excluded)\\.`, 'g'), '($1).');
      const create = `CREATE TEMPORARY TABLE probe (${table} ${table}, excluded ${table})`;
      const index = `CREATE INDEX ON probe ((1)) WHERE ${own}`;
      return rowsOf(owner, `${create}; ${index}`).then(
        () => undefined,
        (error: Error) => `${condition}: ${error.message}`,
      );
    };
    const found = statements.flatMap((text) =>
      [
        ...text.matchAll(
          /INSERT INTO "?(\w+)"? (?:(?!INSERT INTO).)*? DO UPDATE SET (.+?)(?: WHERE (.+?))?(?= RETURNING|\)?$)/g,
        ),
      ].map(([, table = '', set = '', where]) => ({ table, set, where })),
    );
    expect(new Set(found.map(({ table }) => table))).toEqual(new Set(['client', 'idempotency_key', 'key_usage']));
    for (const { table, set, where } of found) {
      const conditions = set.split(/, (?=\w+ = )/).map((each) => `${table}.${each}`);
      if (where !== undefined) conditions.push(where);
      for (const condition of conditions) expect(await refusalOf(table, condition)).toBeUndefined();
    }
    const mutable = `idempotency_key.created_at <= now() - interval '24 hours'`;
    expect(await refusalOf('idempotency_key', mutable)).toContain('must be marked IMMUTABLE');
  });

  test('where the engine refuses the statement of several pages, each request is served by one of its own, and operators are told once', async () => {
    const [, database] = databases as [TestDatabase, TestDatabase];
    const app = await createTestApp({ database });
    await seedPets(app.nest.get(DataSource), 10, 10);
    // The role of the service is not the owner, so the policy concerns it.
    await app.sql(`CREATE FUNCTION refuse() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
      IF current_query() LIKE '%LATERAL%' THEN RAISE 'cannot push down this subquery' USING ERRCODE = '0A000'; END IF;
      RETURN true; END $$`);
    await app.sql('ALTER TABLE pet ENABLE ROW LEVEL SECURITY');
    await app.sql('CREATE POLICY refusing ON pet USING (refuse())');
    const key = await app.createApiKey({ scopes: ['pets:read', 'metrics:read'] });
    const refusals = async (): Promise<number> => {
      const { text } = await app.client.get('/metrics', { apiKey: key });
      return Number(/^petstore_database_refused_statements_total (\d+)$/m.exec(text)?.[1]);
    };
    const askForPages = async (): Promise<number> => {
      const limits = Array.from({ length: 10 }, (_, index) => index + 1);
      const pages = await Promise.all(
        limits.map((limit) => app.client.get(`/v1/pets?limit=${limit}`, { apiKey: key })),
      );
      expect(pages.map(({ json }) => (json as unknown as object[]).length)).toEqual(limits);
      return refusals();
    };
    const before = await refusals();
    let first = before;
    // Requests share a statement if they wait at the same moment, as some of a busy machine do not.
    for (let round = 0; round < 50 && first === before; round++) first = await askForPages();
    // Two may be in flight when the first is refused.
    expect([1, 2]).toContain(first - before);
    expect(await askForPages()).toBe(first);
    const warnings = app.log.lines.filter(({ msg }) => msg.includes('cannot push down this subquery'));
    expect(warnings).toMatchObject([{ level: 40, msg: expect.stringContaining('each gets its own') }]);
    await app.close();
  });
});

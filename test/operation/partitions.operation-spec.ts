import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExpiredKeys } from '../../libs/idempotency/src/idempotency-key.repository.js';
import type { Statement } from '#postgres';
import { createTestApp, type TestApp } from '../support/app.js';
import { report } from '../support/figures.js';
import { judgeApp } from '../support/judge-app.js';
import { Load, type LoadRequest, type Outcome, percentile, tally } from '../support/load.js';
import { createOwnDatabase, petsOf, rowsOf } from '../support/own-database.js';
import { petStatements } from '../support/pet-statements.js';
import { roleUrls } from '../support/postgresql-roles.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';
import { balance, creation, NOTHING_WRONG } from '../support/witness.js';
import { petstoreCommand } from './support/petstore-command.js';
import { postgresql15 } from './support/postgresql-15.js';
import { runPartitioning } from './support/psql.js';

/*
 * The files of ops/partitioning on PostgreSQL 15 and 18, while clients create and read pets at two instances, and a catalogue that
 * they have made.
 */

/** What the test calls of an optional part, which is loaded by a computed path: without it the rest must compile. */
interface KeyUsagePart {
  readonly KEY_USAGE_STATEMENTS: Readonly<Record<'DELETE_BEFORE', Statement>>;
  readonly KeyUsage: new () => { deleteBefore(day: string): Promise<number> };
}
const { KEY_USAGE_STATEMENTS, KeyUsage } = (await import(`../../libs/${'key-usage'}/src/key-usage.js`)) as KeyUsagePart;

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const COUNT = 100_000;
const SIZE = 50_000;

/** The day in UTC, in SQL. */
const TODAY = `(now() AT TIME ZONE 'UTC')::date`;

interface PlanNode {
  'Relation Name'?: string;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

describe.each([
  ['15', () => postgresql15()],
  ['18', () => undefined],
])('on PostgreSQL %s', (version, installation) => {
  let server: PostgresqlServer;
  const running: ServiceProcess[] = [];
  const loads: Load[] = [];

  beforeAll(async () => {
    server = await startPostgresqlServer({}, undefined, installation());
  }, 60_000);
  afterEach(async () => {
    await Promise.all(loads.splice(0).map((load) => load.stop()));
    await Promise.all(running.splice(0).map((service) => service.kill()));
  });
  afterAll(() => server.stop());

  /** A database with pets, another feature's table that refers to them, and usage of the last 410 days. */
  async function createCatalogue(name: string): Promise<{ serviceUrl: string; ownerUrl: string }> {
    const serviceUrl = await createOwnDatabase(server, name);
    const { ownerUrl } = roleUrls(server.url, name, name);
    await rowsOf(
      ownerUrl,
      `INSERT INTO pet (name, category_id, status) SELECT 'Pet ' || n, n, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]::pet_status
        FROM generate_series(1, ${COUNT}) n`,
    );
    await rowsOf(
      ownerUrl,
      `CREATE TABLE visit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        pet_id bigint NOT NULL CONSTRAINT fk_visit_pet REFERENCES pet ON DELETE CASCADE)`,
    );
    await rowsOf(ownerUrl, 'INSERT INTO visit (pet_id) SELECT id FROM pet WHERE id % 10 = 0');
    await rowsOf(ownerUrl, `INSERT INTO client (name) VALUES ('old')`);
    await rowsOf(
      ownerUrl,
      `INSERT INTO api_key (client_id, prefix, hash, scopes) SELECT id, 'pets_', sha256('old'), '{pets:read}' FROM client`,
    );
    await rowsOf(
      ownerUrl,
      `INSERT INTO key_usage SELECT id, 'listPets', ${TODAY} - n, 1, now() - n * interval '1 day', 'agent'
        FROM api_key, generate_series(1, 410) n`,
    );
    return { serviceUrl, ownerUrl };
  }

  /** Starts two instances, and clients of both, until both have answered. */
  async function startTraffic(serviceUrl: string, prefix: string, readId = 1): Promise<void> {
    const settings = { DATABASE_URL: serviceUrl, BOOTSTRAP_API_KEY: API_KEY, RATE_LIMIT_PER_MINUTE: '0' };
    for (const instance of ['a', 'b']) {
      const service = new ServiceProcess(settings, tmpdir());
      running.push(service);
      const origin = await service.origin();
      const next = (index: number): LoadRequest => {
        const name = `${prefix}-${instance}-${index}`;
        const reads = ['/v1/pets?limit=20', `/v1/pets/${readId}`, '/v1/pets?status=sold&limit=5'];
        if (index % 5 < 3) return { method: 'GET', path: reads[index % 5] as string };
        return { ...creation(name), headers: index % 5 === 3 ? { 'idempotency-key': name } : {} };
      };
      loads.push(new Load({ origin, apiKey: API_KEY, clients: 6, next, pauseMs: 2 }));
    }
    await until(() => loads.every(({ outcomes }) => outcomes.length > 100));
  }

  async function stopTraffic(): Promise<readonly Outcome[]> {
    return (await Promise.all(loads.map((load) => load.stop()))).flat();
  }

  const isGood = ({ status }: Outcome): boolean => status === 200 || status === 201;

  test('tables become partitioned ones, also behind a backup, and no request fails', async () => {
    const name = 'shop';
    const { serviceUrl, ownerUrl } = await createCatalogue(name);
    await startTraffic(serviceUrl, 'swap');

    const backup = new pg.Client({ connectionString: ownerUrl });
    await backup.connect();
    await backup.query('BEGIN');
    await backup.query('SELECT count(*) FROM pet');
    const begun = performance.now();
    const swap = runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column: 'id', size: SIZE });
    await sleep(3_000);
    await backup.query('COMMIT');
    await backup.end();
    const printed = [await swap];
    const waited = performance.now() - begun;
    printed.push(await runPartitioning(ownerUrl, 'ahead.sql', { table: 'pet', size: SIZE, ahead: 2 }));
    printed.push(await runPartitioning(ownerUrl, 'partition.sql', { table: 'key_usage', column: 'day', size: 1 }));
    const days = { table: 'key_usage', size: 1, ahead: 7, keep: 400 };
    printed.push(await runPartitioning(ownerUrl, 'ahead.sql', days));
    const keys = { table: 'idempotency_key', column: 'client_id', hash: 4 };
    printed.push(await runPartitioning(ownerUrl, 'partition.sql', keys));
    await sleep(1_000);
    const outcomes = await stopTraffic();

    expect(outcomes.filter((outcome) => !isGood(outcome)).map(({ text, failure }) => failure ?? text)).toEqual([]);
    expect(waited).toBeGreaterThan(3_000);
    expect(balance(outcomes, await petsOf(serviceUrl, 'swap'))).toMatchObject({
      ...NOTHING_WRONG,
      unacknowledgedButThere: 0,
    });
    const changes = printed.join('').matchAll(/pg_temp\.(\w+)\(.* took (\d+) ms/g);
    report(`partitions on PostgreSQL ${version}`, {
      requests: outcomes.length,
      'slowest ms': Math.ceil(percentile(outcomes, 1)),
      ...Object.fromEntries([...changes].map(([, change, ms], index) => [`${index} ${change} ms`, ms as string])),
    });

    const partitions = await rowsOf<[string, string]>(
      ownerUrl,
      `SELECT inhrelid::regclass::text, pg_get_expr(relpartbound, inhrelid) FROM pg_inherits
        JOIN pg_class c ON c.oid = inhrelid WHERE relkind = 'r' AND inhparent = ANY ('{pet,idempotency_key}'::regclass[]) ORDER BY 1`,
    );
    expect(partitions.map(([partition]) => partition)).toEqual(
      ['idempotency_key_0', 'idempotency_key_1', 'idempotency_key_2', 'idempotency_key_3'].concat([
        'pet_200000',
        'pet_first',
        'pet_rest',
      ]),
    );
    expect(
      await rowsOf(ownerUrl, `SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'key_usage'::regclass`),
    ).toEqual([[8]]);
    // The new table has the names, rights and foreign keys of the old one.
    expect(
      await rowsOf(
        ownerUrl,
        `SELECT conname::text, convalidated FROM pg_constraint WHERE contype IN ('p', 'f', 'c') AND (conrelid = 'pet'::regclass
          OR confrelid = 'pet'::regclass AND conparentid = 0 OR conrelid IN ('key_usage'::regclass, 'idempotency_key'::regclass)) ORDER BY 1`,
      ),
    ).toEqual(
      [
        'ck_idempotency_key_fingerprint',
        'ck_idempotency_key_key',
        'ck_pet_name',
        'fk_key_usage_key',
        'fk_visit_pet',
        'pk_idempotency_key',
        'pk_key_usage',
        'pk_pet',
      ].map((constraint) => [constraint, true]),
    );
    await expect(rowsOf(ownerUrl, 'INSERT INTO visit (pet_id) VALUES (-1)')).rejects.toThrow('fk_visit_pet');
    await expect(
      runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column: 'id', size: SIZE }),
    ).rejects.toThrow('pet is not changed: it is partitioned already');
  }, 120_000);

  test('what cannot be partitioned is refused, and after a failure the table is as it was', async () => {
    const { ownerUrl } = await createCatalogue('refused');
    const partition = (column: string): Promise<string> =>
      runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column, size: SIZE });
    await rowsOf(ownerUrl, 'CREATE VIEW sold AS SELECT id FROM pet');
    await expect(partition('category_id')).rejects.toThrow(
      'pet is not changed: pk_pet is unique without category_id, which no partitioned table can keep; sold depends on it.',
    );
    await rowsOf(ownerUrl, 'DROP VIEW sold; CREATE TABLE pet_rest ()');
    await expect(partition('id')).rejects.toThrow('pet is not changed: relation "pet_rest" already exists.');
    const table = `SELECT relkind::text, array_agg(conname::text ORDER BY conname) FROM pg_class JOIN pg_constraint ON conrelid = pg_class.oid
      WHERE pg_class.oid = 'pet'::regclass AND contype IN ('c', 'p') GROUP BY relkind`;
    expect(await rowsOf(ownerUrl, table)).toEqual([['r', ['ck_pet_name', 'pk_pet']]]);
    await rowsOf(ownerUrl, 'DROP TABLE pet_rest');
    await partition('id');
    expect(await rowsOf(ownerUrl, table)).toEqual([['p', ['ck_pet_name', 'pk_pet']]]);
  }, 60_000);

  test('the migration of the page makes an index, of one table and of a partitioned one', async () => {
    const { ownerUrl } = await createCatalogue('indexed');
    const page = await readFile(new URL('../../ops/partitioning/README.md', import.meta.url), 'utf8');
    const [, code = ''] = /```ts\n([^]*?)```/.exec(page) ?? [];
    const file = join(await mkdtemp(join(tmpdir(), 'petstore-partitions-')), 'migration.mjs');
    await writeFile(file, `export async function up(queryRunner) { ${code} }`);
    const { up } = (await import(file)) as { up: (runner: object) => Promise<void> };
    const client = new pg.Client({ connectionString: ownerUrl });
    await client.connect();
    const migrate = (): Promise<void> =>
      up({ query: async (text: string) => (await client.query<Record<string, string>>(text)).rows });
    const index = `SELECT relkind::text, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
      WHERE relname = 'ix_pet_name'`;
    await migrate();
    expect(await rowsOf(ownerUrl, index)).toEqual([['i', true]]);
    await client.query('DROP INDEX ix_pet_name');
    await runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column: 'id', size: SIZE });
    await migrate();
    await migrate();
    expect(await rowsOf(ownerUrl, index)).toEqual([['I', true]]);
    await client.end();
    const parts = `SELECT count(*)::int FROM pg_index JOIN pg_attribute ON attrelid = indexrelid WHERE attname = 'name' AND attnum = 1
      AND indrelid IN ('pet_first'::regclass, 'pet_rest'::regclass)`;
    expect(await rowsOf(ownerUrl, parts)).toEqual([[2]]);
  }, 60_000);

  test('what is late is in the last partition, which ahead.sql ends', async () => {
    const { serviceUrl, ownerUrl } = await createCatalogue('late');
    await runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column: 'id', size: SIZE });
    await runPartitioning(ownerUrl, 'partition.sql', { table: 'key_usage', column: 'day', size: 1 });
    // Of a sequence that has gone on, and of days for which nobody made a partition.
    await rowsOf(ownerUrl, `SELECT setval('pet_id_seq', 777777)`);
    await startTraffic(serviceUrl, 'late');
    await until(async () => (await rowsOf(ownerUrl, 'SELECT FROM pet_rest LIMIT 1')).length > 0);
    await rowsOf(ownerUrl, 'INSERT INTO visit (pet_id) SELECT max(id) FROM pet');
    await rowsOf(
      ownerUrl,
      `INSERT INTO key_usage SELECT id, 'late', ${TODAY} + 9, 1, now(), NULL FROM api_key LIMIT 1`,
    );
    const pets = { table: 'pet', size: SIZE, ahead: 2 };
    expect(await runPartitioning(ownerUrl, 'ahead.sql', pets)).toContain('end_rest');
    expect(await runPartitioning(ownerUrl, 'ahead.sql', pets)).toBe('');
    await runPartitioning(ownerUrl, 'ahead.sql', { table: 'key_usage', size: 1, ahead: 7, keep: 400 });
    const outcomes = await stopTraffic();
    expect(tally(outcomes.filter((outcome) => !isGood(outcome)))).toEqual({});
    expect(balance(outcomes, await petsOf(serviceUrl, 'late'))).toMatchObject(NOTHING_WRONG);
    const inRest = 'SELECT FROM pet_rest UNION ALL SELECT FROM key_usage_rest';
    expect(await rowsOf(ownerUrl, inRest)).toEqual([]);
    expect(await rowsOf(ownerUrl, `SELECT DISTINCT tableoid::regclass::text FROM pet WHERE id > 777777`)).toEqual([
      ['pet_200000'],
    ]);
  }, 120_000);

  test('expired days are dropped as partitions, and keys are found and listed with a partition for each of 400 days', async () => {
    const { serviceUrl, ownerUrl } = await createCatalogue('days');
    await runPartitioning(ownerUrl, 'partition.sql', { table: 'key_usage', column: 'day', size: 1 });
    // As a year of daily runs of ahead.sql leaves it.
    await rowsOf(ownerUrl, 'ALTER TABLE key_usage DETACH PARTITION key_usage_first');
    await rowsOf(
      ownerUrl,
      `DO $$ BEGIN FOR n IN -1 .. 410 LOOP
        EXECUTE format('CREATE TABLE key_usage_past_%s PARTITION OF key_usage FOR VALUES FROM (%L) TO (%L)',
          1 + n, ${TODAY} - n, ${TODAY} - n + 1);
      END LOOP; END $$`,
    );
    await rowsOf(ownerUrl, 'INSERT INTO key_usage SELECT * FROM key_usage_first');
    await startTraffic(serviceUrl, 'days');
    await runPartitioning(ownerUrl, 'ahead.sql', { table: 'key_usage', size: 1, ahead: 7, keep: 400 });
    const outcomes = await stopTraffic();
    expect(tally(outcomes.filter((outcome) => !isGood(outcome)))).toEqual({});
    const found = await rowsOf(
      ownerUrl,
      `SELECT min(day) = ${TODAY} - 399, (SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'key_usage'::regclass) FROM key_usage`,
    );
    // 400 days, 7 days ahead, and the last partition.
    expect(found).toEqual([[true, 408]]);
    const [[day]] = (await rowsOf(ownerUrl, `SELECT (${TODAY} - 390)::text`)) as [[string]];
    const removal = KEY_USAGE_STATEMENTS.DELETE_BEFORE.text.replaceAll('$1', `'${day}'`);
    const plan = (await rowsOf<[string]>(ownerUrl, `EXPLAIN ${removal}`)).flat();
    expect(plan.filter((line) => line.includes('Delete on key_usage_'))).toHaveLength(9);
    const listed = await petstoreCommand(tmpdir(), { DATABASE_URL: serviceUrl }, 'keys', 'list');
    expect(listed).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^1 .* old +- +\d{4}-\d\d-\d\d/m) as string,
    });
  }, 120_000);

  test('a partition that is detached takes its pets along; every other request succeeds', async () => {
    const { serviceUrl, ownerUrl } = await createCatalogue('detached');
    await rowsOf(ownerUrl, 'DROP TABLE visit');
    await runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column: 'id', size: SIZE });
    await rowsOf(ownerUrl, `SELECT setval('pet_id_seq', 777777)`);
    await startTraffic(serviceUrl, 'detached');
    const detached = performance.now();
    await rowsOf(ownerUrl, 'ALTER TABLE pet DETACH PARTITION pet_first CONCURRENTLY');
    const isGone = performance.now();
    await sleep(1_000);
    await rowsOf(
      ownerUrl,
      `ALTER TABLE pet ATTACH PARTITION pet_first FOR VALUES FROM (MINVALUE) TO (${COUNT + SIZE * 2})`,
    );
    const isBack = performance.now();
    await sleep(500);
    const outcomes = await stopTraffic();
    const failed = outcomes.filter((outcome) => !isGood(outcome));
    expect(failed.length).toBeGreaterThan(0);
    for (const { status, request, text, startedAt } of failed) {
      expect([status, request.path, JSON.parse(text)]).toEqual([
        404,
        '/v1/pets/1',
        expect.objectContaining({ code: 'pet_not_found' }),
      ]);
      expect(startedAt > detached - 1_000 && startedAt < isBack).toBe(true);
    }
    const meanwhile = outcomes.filter(({ startedAt, request }) => startedAt > isGone && request.path === '/v1/pets/1');
    expect(meanwhile.filter(isGood).every(({ startedAt }) => startedAt > isGone + 900)).toBe(true);
    expect(balance(outcomes, await petsOf(serviceUrl, 'detached'))).toMatchObject({
      ...NOTHING_WRONG,
      unacknowledgedButThere: 0,
    });
  }, 120_000);

  describe.each(['range', 'hash'] as const)('pets by %s', (method) => {
    let serviceUrl: string;
    let ownerUrl: string;
    let app: TestApp;
    beforeAll(async () => {
      ({ serviceUrl, ownerUrl } = await createCatalogue(method));
      const by: Record<string, number> = method === 'range' ? { size: SIZE } : { hash: 8 };
      await runPartitioning(ownerUrl, 'partition.sql', { table: 'pet', column: 'id', ...by });
      await runPartitioning(ownerUrl, 'partition.sql', { table: 'key_usage', column: 'day', size: 1 });
      await runPartitioning(ownerUrl, 'partition.sql', { table: 'idempotency_key', column: 'client_id', hash: 4 });
      if (method === 'range') {
        await rowsOf(ownerUrl, `SELECT setval('pet_id_seq', ${COUNT + 2 * SIZE - 3})`);
        await runPartitioning(ownerUrl, 'ahead.sql', { table: 'pet', size: SIZE, ahead: 5 });
      }
      const [settings, ownerSettings] = [{ DATABASE_URL: serviceUrl }, { DATABASE_URL: ownerUrl }];
      const database = { settings, ownerSettings, drop: () => Promise.resolve() };
      app = await createTestApp({ database, settings: { REQUEST_TIMEOUT_MS: '1500' } });
    }, 60_000);
    afterAll(() => app.close());

    test('every row of the contract holds, and background work removes what is expired', async () => {
      const { failures, leftOut } = await judgeApp(app);
      expect([failures, leftOut]).toEqual([[], []]);
      const used = await app.sql('SELECT DISTINCT tableoid::regclass::text FROM pet ORDER BY 1');
      expect(used.flat()).toEqual(
        method === 'range' ? ['pet_200000', 'pet_first'] : Array.from({ length: 8 }, (_, part) => `pet_${part}`),
      );
      await app.sql(`UPDATE idempotency_key SET created_at = now() - interval '2 days'`);
      await app.nest.get(ExpiredKeys).remove();
      expect(await app.sql('SELECT FROM idempotency_key')).toEqual([]);
      const [[day]] = (await app.sql(`SELECT (${TODAY} - 9)::text`)) as [[string]];
      expect(await app.nest.get(KeyUsage).deleteBefore(day)).toBeGreaterThan(300);
      expect(await app.sql(`SELECT FROM key_usage WHERE day < $1::date`, [day])).toEqual([]);
    }, 60_000);

    /** By statement of a page or look-up: values, and the partitions that it may read with pets by range, and by hash. */
    const PLANS = [
      ['FIND', ['100'], 1, 1],
      ['PAGE', [], 1, 8],
      ['PAGE_AFTER', ['50'], 1, 8],
      ['PAGES_AFTER', ['{50,60}', '{21,21}'], 1, 8],
      ['PAGE_WITH_STATUS', ['sold'], 6, 8],
      ['PAGE_WITH_STATUS_AFTER', ['90000', 'sold'], 6, 8],
    ] as const;

    test.each(PLANS)('%s reads no more partitions than it must', async (statement, values, byRange, byHash) => {
      const client = new pg.Client({ connectionString: ownerUrl });
      await client.connect();
      try {
        for (const mode of ['custom', 'generic']) {
          await client.query(`SET plan_cache_mode = force_${mode}_plan`);
          await client.query(`PREPARE explained AS ${petStatements(app.nest)[statement].text}`);
          const list = values.length === 0 ? '' : `(${values.map((value) => pg.escapeLiteral(value)).join()})`;
          const explained = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained${list}`);
          const [row] = explained.rows as [{ 'QUERY PLAN': [{ Plan: PlanNode }] }];
          const nodes = [row['QUERY PLAN'][0].Plan];
          for (const node of nodes) nodes.push(...(node.Plans ?? []));
          const read = nodes.filter((node) => node['Relation Name'] !== undefined && node['Actual Loops'] > 0);
          // A partition of one page is read as a whole.
          const large = read.filter((node) => (node['Rows Removed by Filter'] ?? 0) > 100);
          expect(large).toEqual([]);
          expect([mode, read.length]).toEqual([mode, method === 'range' ? byRange : byHash]);
          await client.query('DEALLOCATE explained');
        }
      } finally {
        await client.end();
      }
    });

    test('an export is imported into partitioned tables, with the sequence', async () => {
      const file = join(tmpdir(), `partitions-${version}-${method}.sql`);
      const exported = await petstoreCommand(tmpdir(), { DATABASE_URL: serviceUrl }, 'export', '--to', file);
      expect(exported).toMatchObject({ code: 0 });
      const url = await createOwnDatabase(server, `imported_${method}`);
      const { ownerUrl: importer } = roleUrls(server.url, `imported_${method}`, `imported_${method}`);
      await rowsOf(
        importer,
        'CREATE TABLE visit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, pet_id bigint NOT NULL CONSTRAINT fk_visit_pet REFERENCES pet ON DELETE CASCADE)',
      );
      await runPartitioning(importer, 'partition.sql', { table: 'pet', column: 'id', size: SIZE });
      const imported = await petstoreCommand(tmpdir(), { DATABASE_URL: importer }, 'import', '--from', file);
      expect(imported).toMatchObject({ code: 0 });
      const pets = `SELECT count(*)::int, sum(id)::text, md5(string_agg(name, ',' ORDER BY id)) FROM pet`;
      expect(await rowsOf(url, pets)).toEqual(await rowsOf(serviceUrl, pets));
      const [[next]] = (await rowsOf(serviceUrl, `SELECT nextval(pg_get_serial_sequence('pet', 'id'))::text`)) as [
        [string],
      ];
      expect(await rowsOf(url, `SELECT nextval(pg_get_serial_sequence('pet', 'id'))::text`)).toEqual([[next]]);
      await rm(file);
    }, 60_000);
  });
});

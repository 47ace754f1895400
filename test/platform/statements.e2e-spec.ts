import { DataSource, type QueryRunner } from 'typeorm';
import { PET_STATUSES } from '../../src/pets/pet.entity.js';
import { IDEMPOTENCY_STATEMENTS } from '../../libs/resources/src/idempotency/idempotency-key.repository.js';
import { createTestApp, type TestApp } from '../support/app.js';
import {
  administerTestDatabase,
  createTestDatabase,
  describeOnPostgresql,
  type TestDatabase,
} from '../support/database.js';
import { type PetStatement, petStatements } from '../support/pet-statements.js';
import { type PlanNode, planOf } from '../support/plan.js';

/** Number of pets. The few pending ones have the last ids, so a list without the right index would read all others. */
const COUNT = 200_000;
const PENDING = 150;
const API_KEYS = 20_000;
const IDEMPOTENCY_KEYS = 100_000;

/** PostgreSQL compiles a plan (JIT) whose estimated cost is above its setting jit_above_cost, 100,000 by default. */
const JIT_ABOVE_COST = 100_000;

let database: TestDatabase;
let app: TestApp;
let session: QueryRunner;

beforeAll(async () => {
  // A single connection, whose prepared statements can be read.
  database = await createTestDatabase();
  app = await createTestApp({ database, settings: { DATABASE_POOL_SIZE: '1', STATEMENT_TIMEOUT_MS: '60000' } });
  await app.sql(
    `INSERT INTO pet (name, category_id, status)
      SELECT 'Pet ' || n, n % 40,
        (CASE WHEN n > $1::int - $2::int THEN 'pending' WHEN n % 10 = 0 THEN 'available' ELSE 'sold' END)::pet_status
      FROM generate_series(1, $1::int) n`,
    [COUNT, PENDING],
  );
  await app.sql(`INSERT INTO client (name) SELECT 'client ' || n FROM generate_series(1, $1::int) n`, [API_KEYS]);
  await app.sql(
    `INSERT INTO api_key (client_id, prefix, hash, scopes)
      SELECT id, 'pets_', sha256(name::bytea), '{pets:read}' FROM client WHERE name LIKE 'client %'`,
  );
  await app.sql(
    `INSERT INTO idempotency_key (client_id, key, fingerprint, result, created_at)
      SELECT 1, 'key ' || n, sha256(n::text::bytea), n, now() - interval '1 day' * 1.1 * n / $1::int
      FROM generate_series(1, $1::int) n`,
    [IDEMPOTENCY_KEYS],
  );
  await app.sql(
    `INSERT INTO key_usage SELECT id, 'listPets', current_date - 500 * (id % 2)::int, 1, now(), 'agent' FROM api_key`,
  );
  await app.sql('ANALYZE key_usage, idempotency_key, client, pet, api_key');
  // The service has now run each statement, also the look-up of the key.
  await app.client.get('/v1/pets');
  session = app.nest.get(DataSource).createQueryRunner();
}, 120_000);
afterAll(async () => {
  await session.release();
  await app.close();
  await database.drop();
});

/** Expects a plan that reads only the rows it returns: no sequential scan, no sort, no row removed by a filter. */
function expectDirect(nodes: PlanNode[], index: string | undefined): void {
  const types = nodes.map((node) => node['Node Type']);
  expect(types).not.toContain('Seq Scan');
  expect(types.filter((type) => /Sort|Bitmap|Gather|Hash|Materialize/.test(type))).toEqual([]);
  expect(nodes.flatMap((node) => node.Filter ?? [])).toEqual([]);
  expect(nodes.flatMap((node) => node['Index Name'] ?? [])).toEqual(index === undefined ? [] : [index]);
}

const DIGESTS = `{"\\\\x${'00'.repeat(32)}","\\\\x${'11'.repeat(32)}"}`;
const STATUSES = PET_STATUSES;
const IDS = ['-9223372036854775808', 0, COUNT / 2, COUNT - PENDING, COUNT];

/** Index and values of each statement. */
const CASES: Record<PetStatement, { index?: string; values: (string | number)[][] }> = {
  PAGE: { index: 'pk_pet', values: [[]] },
  PAGE_AFTER: { index: 'pk_pet', values: IDS.map((id) => [id]) },
  PAGE_WITH_STATUS: { index: 'ix_pet_status_id', values: STATUSES.map((status) => [status]) },
  PAGE_WITH_STATUS_AFTER: {
    index: 'ix_pet_status_id',
    values: STATUSES.flatMap((status) => IDS.map((id) => [id, status])),
  },
  PAGES: { index: 'pk_pet', values: [['{21,2,101}']] },
  PAGES_AFTER: { index: 'pk_pet', values: IDS.map((id) => [`{${id},7,8}`, '{21,2,101}']) },
  PAGES_WITH_STATUS: {
    index: 'ix_pet_status_id',
    values: STATUSES.map((status) => [`{pending,${status},sold}`, '{21,2,101}']),
  },
  PAGES_WITH_STATUS_AFTER: {
    index: 'ix_pet_status_id',
    values: STATUSES.flatMap((status) => IDS.map((id) => [`{${id},7,8}`, `{pending,${status},sold}`, '{21,2,101}'])),
  },
  FIND: { index: 'pk_pet', values: [[1], [COUNT + 1]] },
  FIND_MANY: { index: 'pk_pet', values: [['{1,2,3,200000,77777}']] },
  INSERT: { values: [['Rex', 7, 'sold']] },
  INSERT_MANY: { values: [['{Rex,Max}', '{7,8}', '{sold,pending}']] },
  INSERT_ONCE: { values: [['{1,1}', '{new,"key 5"}', DIGESTS, '{Rex,Max}', '{7,8}', '{sold,pending}']] },
};

describe.each(['custom', 'generic'] as const)('EXPLAIN with a %s plan', (mode) => {
  test.each(Object.entries(CASES))('%s: no sequential scan, no sort and no filter', async (name, { index, values }) => {
    // Only the pets to insert are sorted and joined, not the table.
    const ofInputs = name.startsWith('INSERT_') ? /^(Sort|Hash|Hash Join|Merge Join)$/ : /^$/;
    for (const row of values) {
      const nodes = await planOf(session, mode, petStatements(app.nest)[name as PetStatement].text, row);
      expectDirect(
        nodes.filter((node) => !ofInputs.test(node['Node Type'])),
        index,
      );
    }
  });

  /** The indexes that a plan reads, which reads no whole table. */
  async function indexesOf(text: string, values: readonly (string | number)[]): Promise<string[]> {
    const nodes = await planOf(session, mode, text, values);
    expect(nodes.map((node) => node['Node Type'])).not.toContain('Seq Scan');
    return [...new Set(nodes.flatMap((node) => node['Index Name'] ?? []))].sort();
  }

  test.each([
    ['FIND', ['{1,1,1}', '{"key 5",none,"key 6"}'], ['pk_idempotency_key']],
    ['STORE', [1, 'none', `\\x${'00'.repeat(32)}`, '1'], []],
    ['REMOVE_EXPIRED', [], ['ix_idempotency_key_created_at']],
  ] as const)('idempotency keys: %s reads no more than it needs', async (name, values, indexes) => {
    expect(await indexesOf(IDEMPOTENCY_STATEMENTS[name].text, values)).toEqual(indexes);
  });

  test.each([
    ['$1', `\\x${'00'.repeat(32)}`],
    ['ANY ($1)', `{"\\\\x${'00'.repeat(32)}"}`],
  ])('API keys are found by the index of their hash, = %s, and their clients by theirs', async (operand, value) => {
    const query = `SELECT statement FROM pg_prepared_statements WHERE name = 'api_key_find_by_hash'`;
    const [prepared] = (await session.query(query)) as { statement: string }[];
    const text = prepared?.statement.replace('key.hash = $1', `key.hash = ${operand}`) ?? '';
    expect(text).toContain(operand);
    // No usage is read.
    expect(await indexesOf(text, [value])).toEqual(['pk_client', 'uq_api_key_hash', 'uq_api_key_predecessor']);
  });
});

// Compiling takes longer than any of these statements. The rows do not exist; only the planner's estimate is changed.
describeOnPostgresql('with a billion rows in every table, no plan is expensive enough to be compiled', () => {
  beforeAll(async () => {
    await administerTestDatabase(
      database,
      `UPDATE pg_class SET reltuples = 1e9
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i') AND reltuples > 1000`,
    );
  });
  afterAll(() => administerTestDatabase(database, 'ANALYZE'));

  const page = (size: number, value: string | number): string => `{${Array(size).fill(value).join()}}`;
  /** The largest batch of each statement that runs batches. */
  const BATCHES: Record<string, (string | number)[]> = {
    PAGES: [page(16, 101)],
    PAGES_AFTER: [page(16, 7), page(16, 101)],
    PAGES_WITH_STATUS: [page(16, 'sold'), page(16, 101)],
    PAGES_WITH_STATUS_AFTER: [page(16, 7), page(16, 'sold'), page(16, 101)],
    FIND_MANY: [page(200, 7)],
    INSERT_MANY: [page(100, 'Rex'), page(100, 7), page(100, 'sold')],
  };

  test.each(['custom', 'generic'] as const)('%s plans', async (mode) => {
    const expectCheap = async (name: string, text: string, values: (string | number)[]): Promise<void> => {
      const [root] = await planOf(session, mode, text, values);
      expect([name, (root?.['Total Cost'] ?? Infinity) < JIT_ABOVE_COST / 10]).toEqual([name, true]);
    };
    for (const [name, { text }] of Object.entries(petStatements(app.nest)))
      await expectCheap(name, text, BATCHES[name] ?? CASES[name as PetStatement].values[0] ?? []);
    for (const [name, values] of [
      ['FIND', [page(100, 1), page(100, 'none')]],
      ['STORE', [1, 'none', `\\x${'00'.repeat(32)}`, '1']],
      ['REMOVE_EXPIRED', []],
    ] as const)
      await expectCheap(name, IDEMPOTENCY_STATEMENTS[name].text, [...values]);
  });
});

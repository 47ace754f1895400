import { readFileSync } from 'node:fs';
import { DataSource } from 'typeorm';
import { readConfig } from '../../src/config.js';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { migrate } from '../../src/platform/database/schema/migrate.js';
import { ExpiredKeys } from '../../src/platform/idempotency/expired-keys.js';
import { seedPets } from '../../src/pets/pets.seed.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { handedOver } from '../support/engines.js';
import { administer, databaseUrl } from '../support/postgresql-database.js';

/* The service as a role that owns nothing, with the rights that docs/operating.md grants. */

/** Names of this test, for those of the document. */
const SUFFIX = `${process.pid}`;

/** The SQL of "Roles and rights": what makes roles and database, and the grants. */
function documentedSql(): [string, string] {
  const page = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');
  const section = page.slice(page.indexOf('**Roles and rights.**'));
  const [making = '', grants = ''] = [...section.matchAll(/```sql\n([^]*?)```/g)].map(([, sql = '']) =>
    sql.replace(/petstore(_owner|_service)?\b/g, `rights_${SUFFIX}$1`),
  );
  return [making, grants];
}

function statementsOf(sql: string): string[] {
  return sql.split(';').filter((statement) => statement.trim() !== '');
}

describe('a role that owns nothing', () => {
  const server = (): string => handedOver('serverUrl');
  const urlOf = (role: 'owner' | 'service'): string => {
    const url = new URL(databaseUrl(server(), `rights_${SUFFIX}`));
    Object.assign(url, { username: `rights_${SUFFIX}_${role}`, password: `secret-of-the-${role}` });
    return url.href;
  };
  let app: TestApp;

  beforeAll(async () => {
    const [making, grants] = documentedSql();
    for (const statement of statementsOf(making)) await administer(server(), statement);
    for (const statement of statementsOf(grants)) await administer(urlOf('owner'), statement);
    const dataSource = await openDatabase(readConfig({ DATABASE_URL: urlOf('owner') }));
    await migrate(dataSource);
    await dataSource.destroy();
    const database = { settings: { DATABASE_URL: urlOf('service') }, drop: () => Promise.resolve() };
    app = await createTestApp({ database, settings: { MIGRATE_ON_START: 'true', RATE_LIMIT_PER_MINUTE: '0' } });
  });
  afterAll(async () => {
    await app?.close();
    await administer(server(), `DROP DATABASE rights_${SUFFIX} WITH (FORCE)`);
    await administer(server(), `DROP ROLE rights_${SUFFIX}_owner, rights_${SUFFIX}_service`);
  });

  test('the SQL of docs/operating.md is enough for every operation', async () => {
    const body = { name: 'Rex', categoryId: 7 };
    const headers = { 'idempotency-key': 'a-key' };
    const answers = await Promise.all([
      ...Array.from({ length: 5 }, () => app.client.post('/v1/pets', body)),
      ...Array.from({ length: 5 }, () => app.client.post('/v1/pets', body, { headers })),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201));
    expect((await app.client.get('/v1/pets')).json).toHaveLength(6);
    expect((await app.client.get(`/v1/pets/${answers[0]?.json.id}`)).status).toBe(200);
    expect((await app.client.get('/health/ready')).status).toBe(200);
  });

  test('and for what the commands and the work in the background do', async () => {
    const keys = app.nest.get(ApiKeysService);
    const { key } = await keys.create({ client: 'other' });
    const rotated = await keys.rotate(String(key.id), 0);
    await keys.revoke(String(rotated.key.id), 'test');
    await keys.limit('other', 7);
    expect((await keys.list({})).length).toBeGreaterThan(1);
    await app.sql(`UPDATE idempotency_key SET created_at = now() - interval '2 days'`);
    await app.nest.get(ExpiredKeys).remove();
    await seedPets(app.nest.get(DataSource), 10, 10);
  });

  test('it owns nothing, and cannot change the schema', async () => {
    const owned = `SELECT relname FROM pg_class WHERE relowner = current_user::regrole`;
    expect(await app.sql(owned)).toEqual([]);
    for (const change of ['DROP TABLE pet', 'ALTER TABLE pet ADD hole int', 'CREATE TABLE hole ()', 'TRUNCATE pet']) {
      await expect(app.sql(change)).rejects.toMatchObject({ code: '42501' });
    }
  });
});

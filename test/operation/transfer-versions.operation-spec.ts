import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { HttpClient } from '../support/http-client.js';
import { administer } from '../support/postgresql-database.js';
import { createDatabaseWithRoles } from '../support/postgresql-roles.js';
import { type PostgresqlServer, startPostgresqlServer } from '../support/postgresql-server.js';
import { petstoreCommand } from './support/petstore-command.js';
import { postgresql15 } from './support/postgresql-15.js';
import { Services } from './support/services.js';

/*
 * `export` and `import` between major versions of PostgreSQL, and from the embedded engine to the oldest version.
 * operation/transfer tests commands that are killed; platform/transfer tests the tables of a feature.
 */

import.meta.jest.setTimeout(180_000);

const BOOTSTRAP_API_KEY = 'bootstrap-key-of-the-tests';
/** Enough that export and import take longer than the transaction_timeout of the role. */
const ANIMALS = 50_000;
const [LEAST, LARGEST] = [-(2n ** 63n), 2n ** 63n - 1n];
/** Code points beyond 16 bits, combining ones in two normal forms, a change of direction, and what COPY escapes. */
const NAMES = [
  '\u{1F436}\u{1F3FD}\u{10FFFF} e\u0301 \u00e9 \u202e\u05d0',
  'tab\t line\n return\r \\ \\N \\. {a,b} "\'',
];

/** The settings for a database: with the service's role, and with the owner of the schema. */
interface Database {
  readonly version: string;
  readonly settings: Record<string, string>;
  readonly ownerSettings: Record<string, string>;
}

let home: string;
let services: Services;
let fifteen: PostgresqlServer;
let eighteen: PostgresqlServer;
let made = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'petstore-versions-'));
  services = new Services(home, { LOG_LEVEL: 'warn' });
  fifteen = await startPostgresqlServer({}, undefined, postgresql15());
  eighteen = await startPostgresqlServer();
});
afterEach(() => services.kill());
afterAll(async () => {
  await fifteen.stop();
  await eighteen.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Makes a database without a schema. On PostgreSQL 18 the owner's transactions may take 300 ms. */
const MAKERS: Record<string, () => Promise<Database>> = {
  'the embedded engine': () => {
    const settings = { DATA_DIR: join(home, `data-${++made}`) };
    return Promise.resolve({ version: '18', settings, ownerSettings: settings });
  },
  'PostgreSQL 15': () => onServer('15', fifteen),
  'PostgreSQL 18': async () => {
    const database = await onServer('18', eighteen);
    await administer(eighteen.url, `ALTER ROLE moved_${made}_owner SET transaction_timeout = '300ms'`);
    return database;
  },
};

async function onServer(version: string, { url }: PostgresqlServer): Promise<Database> {
  const { serviceUrl, ownerUrl } = await createDatabaseWithRoles(url, `moved_${++made}`);
  return { version, settings: { DATABASE_URL: serviceUrl }, ownerSettings: { DATABASE_URL: ownerUrl } };
}

async function petstore({ ownerSettings }: Database, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await petstoreCommand(home, ownerSettings, ...args);
  if (code !== 0) throw new Error(`petstore ${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function query({ ownerSettings }: Database, ...statements: string[]): Promise<unknown[][]> {
  const dataSource = await openDatabase(readConfig(ownerSettings));
  const results: unknown[][] = [];
  try {
    for (const statement of statements) results.push(await dataSource.query<unknown[]>(statement));
  } finally {
    await dataSource.destroy();
  }
  return results;
}

/** Adds rows with the smallest and largest values of their types, and advances sequences. */
async function fill(database: Database): Promise<void> {
  const [first, second] = NAMES.map((name) => `'${name.replaceAll("'", "''")}'`);
  await query(
    database,
    `INSERT INTO pet (id, name, category_id, status) OVERRIDING SYSTEM VALUE VALUES
      (${LEAST}, ${first}, ${LARGEST}, 'sold'), (${LARGEST}, ${second}, ${LEAST}, 'pending')`,
    `INSERT INTO pet (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, ${ANIMALS}) n`,
    `INSERT INTO client (name, rate_limit_per_minute, created_at) VALUES (${first}, 2147483647, '-infinity')`,
    `INSERT INTO api_key (client_id, prefix, hash, scopes, created_at, expires_at, revoked_at, revoked_reason)
      SELECT id, '', sha256('old'), ARRAY['a,b', '"', 'NULL', '', '{}'], '4714-11-24 00:00:00Z BC',
        '294276-12-31 23:59:59.999999Z', '0044-03-15 12:00:00.000001Z BC', ${second}
      FROM client WHERE rate_limit_per_minute IS NOT NULL`,
    `INSERT INTO key_usage SELECT id, ${second}, day::date, ${LARGEST}, 'infinity', ${first}
      FROM api_key, (VALUES ('4714-11-24 BC'), ('5874897-12-31'), ('infinity')) days (day) WHERE prefix = ''`,
    `INSERT INTO idempotency_key SELECT id, ${first}, sha256(''), ${second}, '0001-01-01 00:00:00Z BC' FROM client`,
  );
}

const TABLES = ['api_key', 'client', 'idempotency_key', 'key_usage', 'pet'];
const SEQUENCES = ['api_key_id_seq', 'client_id_seq', 'pet_id_seq'];

/** Every row in PostgreSQL's own text form, the animals as one digest, and the states of the sequences. */
async function contentOf(database: Database): Promise<unknown> {
  const [names, ...contents] = await query(
    database,
    `SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')
      AND relname NOT LIKE 'schema_migration%' ORDER BY relname COLLATE "C"`,
    ...SEQUENCES.map((name) => `SELECT last_value::text, is_called FROM ${name}`),
    `SELECT count(*)::int, md5(string_agg(pet::text, ',' ORDER BY id)) FROM pet`,
    ...TABLES.filter((table) => table !== 'pet').map(
      // to_json, because a row as text depends on the time zone of the session.
      (table) => `SELECT to_json(t)::text AS row FROM ${table} t ORDER BY t::text COLLATE "C"`,
    ),
  );
  expect(names).toEqual([...TABLES, ...SEQUENCES].sort().map((name) => ({ name })));
  return contents;
}

test.each([
  ['the embedded engine', 'PostgreSQL 15'],
  ['PostgreSQL 15', 'PostgreSQL 18'],
  ['PostgreSQL 18', 'PostgreSQL 15'],
])(
  'a move from %s to %s keeps every value, and API keys, idempotency keys and usage counts go on',
  async (from, to) => {
    const source = await (MAKERS[from] as () => Promise<Database>)();
    const target = await (MAKERS[to] as () => Promise<Database>)();
    await petstore(source, 'migrate');
    const before = services.start({ ...source.settings, BOOTSTRAP_API_KEY });
    const old = new HttpClient(await before.origin(), BOOTSTRAP_API_KEY);
    const [path, animal, call] = [
      '/v1/pets',
      { name: 'Bella', categoryId: 7 },
      { headers: { 'idempotency-key': 'k' } },
    ];
    const first = await old.post(path, animal, call);
    expect([first.status, first.headers.location]).toEqual([201, expect.stringMatching(/\/v1\/pets\/1$/)]);
    expect((await old.get(path)).status).toBe(200);
    expect(await before.stop('SIGTERM')).toBe(0);
    const readKey = (
      await petstore(source, 'keys', 'create', '--client', 'r', '--scopes', 'pets:read', '--quiet')
    ).trim();
    await fill(source);

    await petstore(source, 'export', '--to', `${made}.gz`);
    await petstore(target, 'migrate');
    await petstore(target, 'import', '--from', `${made}.gz`);
    expect(await contentOf(target)).toEqual(await contentOf(source));
    for (const database of [source, target]) {
      const [[version] = []] = await query(database, 'SHOW server_version');
      expect(version).toEqual({
        server_version: expect.stringMatching(new RegExp(`^${database.version}\\.`)) as string,
      });
    }

    const after = services.start(target.settings);
    const client = new HttpClient(await after.origin(), BOOTSTRAP_API_KEY);
    for (const [id, name, categoryId, status] of [
      [LEAST, NAMES[0], LARGEST, 'sold'],
      [LARGEST, NAMES[1], LEAST, 'pending'],
    ]) {
      expect((await client.get(`${path}/${id}`)).json).toEqual({ id, name, categoryId, status });
    }
    // Before the repeated request, which draws an id that it does not use.
    expect((await client.post(path, animal)).headers.location).toMatch(new RegExp(`/${ANIMALS + 2}$`));
    const repeated = await client.post(path, animal, call);
    expect([repeated.status, repeated.text, repeated.headers['idempotent-replayed']]).toEqual([
      201,
      first.text,
      'true',
    ]);
    expect((await client.get(path, { apiKey: readKey })).status).toBe(200);
    expect((await client.post(path, animal, { apiKey: readKey })).status).toBe(403);
    expect((await client.get(path)).status).toBe(200);
    expect(await after.stop('SIGTERM')).toBe(0);
    const [calls] = await query(
      target,
      `SELECT client_id::int AS client, sum(calls)::int AS calls FROM key_usage JOIN api_key ON id = key_id
      WHERE operation = 'listPets' GROUP BY 1 ORDER BY 1`,
    );
    expect(calls).toEqual([
      { client: 1, calls: 2 },
      { client: 2, calls: 1 },
    ]);
  },
);

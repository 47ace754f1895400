import { Body, Controller, HttpCode, Module, Param, Post } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Idempotency, IdempotencyKey, Idempotent } from '#resources';
import { Int64Property, TextProperty } from '#input';
import { RequireScopes } from '#operations';
import { Database } from '#postgres';
import { ExpiredKeys } from '../../libs/resources/src/idempotency/idempotency-key.repository.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { describeOnPostgresql } from '../support/database.js';
import { type HttpAnswer, HttpClient } from '../support/http-client.js';
import { petStatements } from '../support/pet-statements.js';
import { until } from '../support/until.js';

const SETTINGS = { RATE_LIMIT_PER_MINUTE: '0' };
const REX = { name: 'Rex', categoryId: 9223372036854775807n };

class NewNote {
  @TextProperty({ description: 'Text.', minLength: 1, maxLength: 40 })
  text: string;

  @Int64Property({ description: 'Weight.' })
  weight: bigint;
}

@Controller('test-notes')
@RequireScopes()
class TestNotesController {
  runs = 0;

  constructor(private readonly idempotency: Idempotency) {}

  /** Two changes in one transaction, of which the second may fail. */
  @Post()
  async writeNote(@Body() note: NewNote, @Idempotent() key: IdempotencyKey | undefined): Promise<object> {
    const id = await this.idempotency.once(key, note, async ({ manager }) => {
      this.runs++;
      const insert = 'INSERT INTO test_note (text) VALUES ($1) RETURNING id';
      const [row] = await manager.query<[{ id: string }]>(insert, [note.text]);
      await manager.query('INSERT INTO test_weight (grams) VALUES ($1)', [note.weight]);
      return row.id;
    });
    return { id: BigInt(id), ...note };
  }

  @Post('drafts')
  async writeDraft(@Body() note: NewNote, @Idempotent() key: IdempotencyKey | undefined): Promise<object> {
    return this.writeNote(note, key);
  }

  @Post(':id/return/:place')
  @HttpCode(200)
  return(@Param('id') id: string, @Idempotent() key: IdempotencyKey | undefined): Promise<object> {
    return this.idempotency.answer(key, {}, () => Promise.resolve({ id }));
  }
}

@Module({ controllers: [TestNotesController] })
class NotesModule {}

async function startWithNotes(settings = {}): Promise<TestApp> {
  const started = await createTestApp({ settings: { ...SETTINGS, ...settings }, features: [NotesModule] });
  await started.sql('CREATE TABLE test_note (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text UNIQUE)');
  await started.sql('CREATE TABLE test_weight (grams bigint CHECK (grams > 0))');
  return started;
}

let app: TestApp;
beforeAll(async () => {
  app = await startWithNotes();
});
afterAll(() => app.close());

let count = 0;
/** A key that no other test uses. */
const newKey = (): string => `key-${++count}`;

function add(key: string | undefined, body: unknown = REX, client: HttpClient = app.client): Promise<HttpAnswer> {
  return client.post('/v1/pets', body, { headers: { 'idempotency-key': key } });
}

function expectReplay(answer: HttpAnswer, first: HttpAnswer): void {
  expect(first.status).toBe(201);
  expect([answer.status, answer.text, answer.headers.location]).toEqual([201, first.text, first.headers.location]);
  expect(answer.headers['idempotent-replayed']).toBe('true');
}

function expectRefusal({ status, json, headers }: HttpAnswer): void {
  const message = expect.any(String) as string;
  expect([status, json]).toEqual([422, { code: 'idempotency_key_reused', message, status: 422 }]);
  expect([headers['idempotent-replayed'], headers.location]).toEqual([undefined, undefined]);
}

test('201: the first response, also after the pet was changed or deleted', async () => {
  const key = newKey();
  const body = { name: 'Rex "II", {the} \\ 🐕', categoryId: -1 };
  const first = await add(key, body);
  await app.sql(`UPDATE pet SET name = 'Max', category_id = 2, status = 'sold' WHERE id = $1`, [first.json.id]);
  expectReplay(await add(key, body), first);
  await app.sql('DELETE FROM pet WHERE id = $1', [first.json.id]);
  expectReplay(await add(key, body), first);
});

test('a key belongs to the path parameters of its request, decoded: 422 for others, also if the input ignores them', async () => {
  const key = newKey();
  const back = (path: string): Promise<HttpAnswer> =>
    app.client.post(`/v1/test-notes/${path}`, undefined, { headers: { 'idempotency-key': key } });
  expect((await back('21/return/a%20b')).json).toEqual({ id: '21' });
  expect((await back('21/return/a%20%62')).text).toBe('{"id":"21"}');
  expectRefusal(await back('22/return/a%20b'));
  expectRefusal(await back('21/return/b'));
});

test('storing keys does not lock the row of the client', async () => {
  // `xmax` of a row is the last transaction that has locked it. Concurrent locks would create a multixact each time.
  const locks = (): Promise<unknown[][]> => app.sql('SELECT id, xmax::text FROM client ORDER BY id');
  const before = await locks();
  await add(newKey(), REX);
  expect(await locks()).toEqual(before);
});

describe('24 hours', () => {
  /** Makes a key older, by the clock of the database. */
  const age = (key: string, hours: number): Promise<unknown> =>
    app.sql(`UPDATE idempotency_key SET created_at = created_at - interval '1 h' * $2 WHERE key = $1`, [key, hours]);

  test('after 24 h a key is new, removed or not, with the same body or another one', async () => {
    for (const body of [REX, { ...REX, name: 'Tom' }]) {
      const key = newKey();
      const first = await add(key);
      await age(key, 24);
      const second = await add(key, body);
      expect([second.status, second.headers['idempotent-replayed']]).toEqual([201, undefined]);
      expect(second.json.id).not.toBe(first.json.id);
      // From now on the key is kept for a day again.
      await age(key, 23.98);
      expectReplay(await add(key, body), second);
    }
  });

  test('the clock of an instance does not matter', async () => {
    const key = newKey();
    const first = await add(key);
    app.clock.travelTo(Date.now() + 48 * 3_600_000);
    expectReplay(await add(key), first);
    app.clock.comeBack();
  });

  test('only expired keys are removed, in batches', async () => {
    await app.sql('DELETE FROM idempotency_key');
    await storeKeys('gone', 0, 2_500);
    await storeKeys('kept', -60, 30);
    expect(await app.nest.get(ExpiredKeys).remove()).toBe(2_500);
    expect(await app.sql(`SELECT DISTINCT left(key, 4) FROM idempotency_key`)).toEqual([['kept']]);
    expect(await app.nest.get(ExpiredKeys).remove()).toBe(0);
    expect(await app.sql('SELECT count(*)::int FROM idempotency_key')).toEqual([[30]]);
  });
});

test('fifty requests with one key at the same moment create one pet, and all responses are the same', async () => {
  const key = newKey();
  const body = { ...REX, name: 'Fifty at once' };
  const answers = await Promise.all(Array.from({ length: 50 }, () => add(key, body)));
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(201));
  expect(new Set(answers.map(({ text, headers }) => `${text} ${headers.location}`)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
  expect(await app.sql(`SELECT count(*)::int FROM pet WHERE name = 'Fifty at once'`)).toEqual([[1]]);
});

describe('a module with idempotent work', () => {
  const write = (key: string | undefined, body: object): Promise<HttpAnswer> =>
    app.client.post('/v1/test-notes', body, { headers: { 'idempotency-key': key }, expects500: true });
  let notes: TestNotesController;
  beforeEach(() => {
    notes = app.nest.get(TestNotesController);
    notes.runs = 0;
  });

  test('runs the work once for a key, and every time without a key', async () => {
    const key = newKey();
    const first = await write(key, { text: 'once', weight: 2n ** 62n });
    expectReplay(await write(key, { text: 'once', weight: 2n ** 62n }), first);
    expect([first.json, notes.runs]).toEqual([{ id: first.json.id, text: 'once', weight: 2n ** 62n }, 1]);
    expectRefusal(await write(key, { text: 'once', weight: 2n ** 62n + 1n }));
    await write(undefined, { text: 'without', weight: 1 });
    expect((await write(undefined, { text: 'without', weight: 1 })).status).toBe(500);
    expect(notes.runs).toBe(3);
  });

  test('stores neither changes nor key when the work fails', async () => {
    const key = newKey();
    expect((await write(key, { text: 'fails', weight: 0 })).status).toBe(500);
    expect(await app.sql(`SELECT FROM test_note WHERE text = 'fails'`)).toEqual([]);
    expect((await write(key, { text: 'fails', weight: 5 })).status).toBe(201);
  });

  test('refuses a key that another operation has stored', async () => {
    const key = newKey();
    const note = { text: 'elsewhere', weight: 1 };
    expect((await write(key, note)).status).toBe(201);
    const headers = { 'idempotency-key': key };
    expectRefusal(await app.client.post('/v1/test-notes/drafts', note, { headers }));
    expectRefusal(await add(key));
  });
});

/** Stores keys that begin with a word, and are older than 24 hours by some seconds. */
const storeKeys = (word: string, seconds: number, keys: number): Promise<unknown> =>
  app.sql(
    `INSERT INTO idempotency_key (client_id, key, fingerprint, result, created_at)
      SELECT 1, $1 || ' ' || n, sha256(''), '1', now() - interval '24 hours' - interval '1 s' * $2::int
      FROM generate_series(1, $3::int) n`,
    [word, seconds, keys],
  );

/** A new connection's open transaction that has stored a key, as one whose commit waits for a standby; ends it. */
async function holdKey({ nest }: TestApp, key: string, also = 'SELECT'): Promise<() => Promise<unknown>> {
  const holder = nest.get(DataSource).createQueryRunner();
  await holder.startTransaction();
  await holder.query(
    `INSERT INTO idempotency_key (client_id, key, fingerprint, result) SELECT min(id), $1, sha256(''), '0' FROM client`,
    [key],
  );
  await holder.query(also);
  return async () => {
    await holder.rollbackTransaction();
    await holder.release();
  };
}

describeOnPostgresql('an earlier attempt that does not end within STATEMENT_TIMEOUT_MS', () => {
  let slow: TestApp;
  beforeAll(async () => {
    slow = await startWithNotes({ STATEMENT_TIMEOUT_MS: '300' });
  });
  afterAll(() => slow.close());

  const post = (path: string, key: string, body: object): Promise<HttpAnswer> =>
    slow.client.post(path, body, { headers: { 'idempotency-key': key }, expects500: true });
  const message = 'Whether the request was carried out before is not known. Send it again.';

  test.each([
    ['its key', '/v1/pets', REX, undefined],
    ['its key, in the transaction of a module', '/v1/test-notes', { text: 'key', weight: 1 }, undefined],
    ['another row of it', '/v1/test-notes', { text: 'row', weight: 1 }, `INSERT INTO test_note (text) VALUES ('row')`],
    ['the table of keys', '/v1/test-notes', { text: 'table', weight: 1 }, 'LOCK TABLE idempotency_key'],
  ])(
    '503 with Retry-After, not took_too_long, for a retry that waits for %s; a later one settles it',
    async (_, path, body, also) => {
      const key = newKey();
      const release = await holdKey(slow, key, also);
      expect(await post(path, key, body)).toMatchObject({
        status: 503,
        json: { code: 'unavailable', message, status: 503 },
        headers: { 'retry-after': '1' },
      });
      expect(slow.log.requests.at(-1)).toMatchObject({ status: 503, cause: 'unsettled' });
      await release();
      expect((await post(path, key, body)).status).toBe(201);
    },
  );

  test('500 took_too_long for a change that takes too long by itself', async () => {
    await slow.sql(
      `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NEW; END'`,
    );
    for (const table of ['pet', 'test_note'])
      await slow.sql(`CREATE TRIGGER linger BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION linger()`);
    expect((await post('/v1/pets', newKey(), REX)).json).toMatchObject({ code: 'took_too_long', status: 500 });
    const note = { text: 'slow', weight: 1 };
    expect((await post('/v1/test-notes', newKey(), note)).json).toMatchObject({ code: 'took_too_long', status: 500 });
  });
});

/** Delays a statement between storing its key and its commit, as a slow disk would, while the test holds the lock. */
const HOLD = [
  `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END $$`,
  'CREATE TRIGGER hold AFTER INSERT ON pet FOR EACH STATEMENT EXECUTE FUNCTION hold()',
];

describeOnPostgresql('two instances', () => {
  let other: TestApp;
  beforeAll(async () => {
    other = await createTestApp({ database: app.database, settings: SETTINGS });
    await app.sql('DELETE FROM idempotency_key');
  });
  afterAll(() => other.close());

  test('a request whose key is not committed yet waits, and gets the first response', async () => {
    const key = newKey();
    for (const statement of HOLD) await app.sql(statement);
    const client = new HttpClient(other.origin, app.apiKey);
    const answers = await other.nest.get(Database).transaction(async ({ manager }) => {
      await manager.query('SELECT pg_advisory_xact_lock(7)');
      const sent = [add(key)];
      await untilBlocked(app, 1);
      sent.push(add(key, REX, client), add(key, { ...REX, name: 'Tom' }, client));
      await untilBlocked(app, 2);
      return { sent };
    });
    const all = await Promise.all(answers.sent);
    await app.sql('DROP TRIGGER hold ON pet');
    // Instances do not share statements, so either request may be the first one that commits.
    const isFirst = ({ status, headers }: HttpAnswer): boolean =>
      status === 201 && headers['idempotent-replayed'] === undefined;
    const winner = all.findIndex(isFirst);
    expect(all.filter(isFirst)).toHaveLength(1);
    all.forEach((answer, index) => {
      if (index === winner) return;
      // The third one adds Tom.
      if ((index === 2) === (winner === 2)) expectReplay(answer, all[winner] as HttpAnswer);
      else expectRefusal(answer);
    });
  });

  test('batches with the same keys in opposite order never deadlock', async () => {
    // Each key takes 5 ms, so both statements have stored some keys when they meet.
    await app.sql(
      `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END $$`,
    );
    await app.sql('CREATE TRIGGER linger BEFORE INSERT ON idempotency_key FOR EACH ROW EXECUTE FUNCTION linger()');
    const [[clientId]] = (await app.sql('SELECT id FROM client')) as [[string]];
    const insert = ({ nest }: TestApp, keys: string[]): Promise<unknown[][]> =>
      nest
        .get(Database)
        .write(petStatements(nest).INSERT_ONCE, [
          keys.map(() => clientId),
          keys,
          keys.map(() => Buffer.alloc(32)),
          keys,
          keys.map(() => 1n),
          keys.map(() => 'sold'),
        ]);
    for (let round = 0; round < 4; round++) {
      const keys = Array.from({ length: 20 }, () => newKey());
      // In a circular wait, PostgreSQL would report "deadlock detected".
      const inserted = await Promise.all([insert(app, keys), insert(other, [...keys].reverse())]);
      expect(inserted.flat().map(([, key]) => key)).toHaveLength(keys.length);
    }
    await app.sql('DROP TRIGGER linger ON idempotency_key');
  });

  test('instances remove expired keys at the same time, each key once', async () => {
    await storeKeys('old', 60, 3_000);
    const removed = await Promise.all([app, other].map(({ nest }) => nest.get(ExpiredKeys).remove()));
    expect((removed[0] ?? 0) + (removed[1] ?? 0)).toBe(3_000);
  });

  test('a key that a request renews during its removal is kept', async () => {
    await storeKeys('renewed', 60, 2);
    const removal = await app.nest.get(Database).transaction(async ({ manager }) => {
      await manager.query(`UPDATE idempotency_key SET created_at = now() WHERE key = 'renewed 1'`);
      const removing = other.nest.get(ExpiredKeys).remove();
      await untilBlocked(other, 1);
      return { removing };
    });
    expect(await removal.removing).toBe(1);
    expect(await app.sql(`SELECT key FROM idempotency_key WHERE key LIKE 'renewed%'`)).toEqual([['renewed 1']]);
  });

  /** Waits until at least this many statements wait for a lock. */
  function untilBlocked({ nest }: TestApp, statements: number): Promise<true> {
    const query = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    // PostgreSQL shows the state of a session only to the session's own role.
    return until(async () => (await nest.get(Database).read({ name: '', text: query }, [])).length >= statements);
  }
});

import { DataSource } from 'typeorm';
import { Database } from '#postgres';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, describeOnPostgresql } from '../support/database.js';
import { handedOver } from '../support/engines.js';
import { administer, databaseUrl } from '../support/postgresql-database.js';
import { DatabaseProxy } from '../faults/support/database-proxy.js';

/* What PostgreSQL, or a pooler, refuses or undoes. */

describeOnPostgresql('on a server', () => {
  let app: TestApp;
  let database: Database;
  let proxy: DatabaseProxy;

  beforeAll(async () => {
    const own = await createTestDatabase();
    proxy = await DatabaseProxy.start(own.settings['DATABASE_URL'] as string);
    const settings = { DATABASE_URL: proxy.url };
    app = await createTestApp({ database: { ...own, settings }, settings });
    database = app.nest.get(Database);
  });
  afterAll(async () => {
    await app.close();
    await proxy.stop();
  });

  test.each([
    ...['08P01', '0A000', '22023', '28000', '28P01', '3D000', '42501', '42704', '53300', '54000', '55000', '57P03'],
    ...['XX000', '08006', '08004', '22P02', '42601', '53400', '57P01', 'XX001'],
  ])('a log-in that is refused by SQLSTATE %s is 503, and the service serves again when it is not', async (code) => {
    await app.client.get('/v1/pets');
    proxy.refuseLogIns(code);
    const answer = await app.client.get('/v1/pets', { expects500: true });
    proxy.deliver();
    expect([answer.status, answer.json.code]).toEqual([503, 'unavailable']);
    expect((await app.client.get('/v1/pets')).status).toBe(200);
  });

  /** Runs `work` once in each of a number of statements that raise an SQLSTATE. */
  const raising = (code: string, times: number): { name: string; text: string } => ({
    name: '',
    text: `SELECT test_raise('${code}', ${times})`,
  });

  test('a deadlock of a single statement is repeated, at most twice; a transaction is 503 at once, and never repeated', async () => {
    await app.sql('CREATE SEQUENCE test_attempts');
    await app.sql(`CREATE FUNCTION test_raise(code text, times int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
      DECLARE attempt bigint := nextval('test_attempts');
      BEGIN
        IF attempt <= times THEN RAISE EXCEPTION 'undone' USING ERRCODE = code; END IF;
        RETURN attempt;
      END $$`);
    const restart = (): Promise<unknown> => app.sql('ALTER SEQUENCE test_attempts RESTART');
    expect(await database.write(raising('40P01', 2), [])).toEqual([['3']]);
    await restart();
    await expect(database.write(raising('40P01', 5), [])).rejects.toMatchObject({ code: '40P01' });
    expect(await database.write(raising('40P01', 0), [])).toEqual([['4']]);
    for (const code of ['40P01', '40001']) {
      await restart();
      const work = database.transaction((own) => own.run(raising(code, 1), []));
      await expect(work).rejects.toMatchObject({
        status: 503,
        message: 'Another request was changing the same data, and nothing was changed. Try again.',
      });
      expect(await database.write(raising(code, 0), [])).toEqual([['2']]);
    }
  });

  test('a change that Citus has cancelled may have been made, and the response says so; a read has no such text', async () => {
    const own = await createTestDatabase();
    const { pathname } = new URL(own.settings['DATABASE_URL'] as string);
    await administer(
      databaseUrl(handedOver('serverUrl'), pathname.slice(1)),
      `INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
        VALUES (99999, 'citus', 10, 'public'::regnamespace, false, '13')`,
    );
    const citus = await createTestApp({ database: own, settings: { STATEMENT_TIMEOUT_MS: '300' } });
    const pet = { name: 'Rex', categoryId: 7 };
    await citus.client.get('/v1/pets');
    const answers = await citus.nest.get(Database).transaction(async ({ manager }) => {
      await manager.query('LOCK TABLE pet');
      return [
        await citus.client.get('/v1/pets', { expects500: true }),
        await citus.client.post('/v1/pets', pet, { expects500: true }),
      ];
    });
    const mayBeMade = expect.stringContaining(' it may have been made') as string;
    const isUnchanged = expect.not.stringContaining('it may have been made') as string;
    expect(answers).toMatchObject([
      { status: 500, json: { code: 'took_too_long', message: isUnchanged } },
      { status: 500, json: { code: 'took_too_long', message: mayBeMade } },
    ]);
    await citus.close();
    await own.drop();
  });

  test('more parameters than the protocol counts: an error that says so, and the connection lives', async () => {
    const values = Array.from({ length: 65_536 }, (_, index) => index);
    const text = `SELECT 1 WHERE 0 IN (${values.map((index) => `$${index + 1}`).join()})`;
    const sentence = /65536 parameters, more than the 65535/;
    await expect(database.write({ name: '', text }, values)).rejects.toThrow(sentence);
    await expect(database.write({ name: 'many', text }, values)).rejects.toThrow(sentence);
    await expect(app.nest.get(DataSource).query(text, values)).rejects.toThrow(sentence);
    expect(await database.read({ name: '', text: 'SELECT 1' }, [])).toEqual([[1]]);
  });
});

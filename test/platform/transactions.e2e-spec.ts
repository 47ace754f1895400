import { Injectable, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type EntityManager, type EntitySubscriberInterface } from 'typeorm';
import { TextProperty } from '#input';
import { Database } from '#postgres';
import { Idempotency, IdempotencyKey } from '#resources';
import { createTestApp, type TestApp } from '../support/app.js';
import { engine } from '../support/database.js';
import { COUNT_NOTES, CREATE_NOTES, INSERT_NOTE, NoteEntity, Notes } from '../support/notes.js';

/* A shared repository, Database and Idempotency inside a transaction of the module. */

class NewNote {
  @TextProperty({ description: 'Text.', minLength: 1, maxLength: 40 }) text: string;
}

@Injectable()
class NotesService {
  constructor(private readonly notes: Notes) {}

  addNote(note: NewNote, manager?: EntityManager): Promise<bigint> {
    return (manager ? this.notes.in(manager) : this.notes).insertOnce(undefined, note);
  }
}

@Module({ imports: [TypeOrmModule.forFeature([NoteEntity])], providers: [Notes, NotesService] })
class NotesModule {}

const KEY = new IdempotencyKey(1n, 'POST /v1/notes', 'a', () => undefined);

let app: TestApp;
let notes: Notes;
let database: Database;
let dataSource: DataSource;

beforeAll(async () => {
  app = await createTestApp({ features: [NotesModule] });
  await app.sql(CREATE_NOTES);
  [notes, database, dataSource] = [app.nest.get(Notes), app.nest.get(Database), app.nest.get(DataSource)];
});
afterAll(() => app.close());
beforeEach(() => app.sql('DELETE FROM test_note'));

const stored = async (): Promise<unknown[]> => (await app.sql('SELECT text FROM test_note ORDER BY id')).flat();

test('in(manager) sees what the transaction has changed, is committed with it, and undone with it', async () => {
  const seen = await database.transaction(async ({ manager }) => {
    const own = notes.in(manager);
    const id = await own.insertOnce(undefined, { text: 'kept' });
    return [(await own.find(id))?.text, (await own.page({ limit: 5 })).items.length];
  });
  const undone = database.transaction(async ({ manager }) => {
    await app.nest.get(NotesService).addNote({ text: 'undone' }, manager);
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  expect([seen, await stored()]).toEqual([['kept', 1], ['kept']]);
});

test('in(manager) refuses an idempotency key, and names what skips the whole work', async () => {
  const refused = database.transaction(({ manager }) => notes.in(manager).insertOnce(KEY, { text: 'a' }));
  await expect(refused).rejects.toThrow(/Idempotency\.once/);
  expect(await stored()).toEqual([]);
});

test.each<[name: string, write: () => Promise<unknown>]>([
  ['insertOnce', () => notes.insertOnce(undefined, { text: 'a' })],
  ['insertOnce with a key', () => notes.insertOnce(KEY, { text: 'a' })],
  ['Database.write', () => database.write(INSERT_NOTE, ['a'])],
  ['Database.transaction', () => database.transaction((own) => own.run(INSERT_NOTE, ['a']))],
  ['Idempotency.answer', () => app.nest.get(Idempotency).answer(undefined, {}, (own) => own.run(INSERT_NOTE, ['a']))],
])('%s beside a transaction that surrounds it is refused, and says what to write', async (_, write) => {
  await expect(database.transaction(write)).rejects.toThrow(/in\(manager\)/);
  await expect(dataSource.transaction(write)).rejects.toThrow(/in\(manager\)/);
  expect(await stored()).toEqual([]);
});

test('reads beside a transaction: refused on the embedded engine, one warning a place on PostgreSQL', async () => {
  const read = async (): Promise<unknown[]> => [await notes.find(1n), await database.read(COUNT_NOTES, [])];
  const twice = database.transaction(async () => [await read(), await read()]);
  if (engine === 'embedded') return expect(twice).rejects.toThrow(/in\(manager\)/);
  const lines = app.log.lines.length;
  expect(await twice).toEqual(Array(2).fill([undefined, [[0]]]));
  const warnings = app.log.lines.slice(lines).filter(({ msg }) => String(msg).includes('does not see'));
  const warning = { level: 40, msg: expect.stringContaining('transactions.e2e-spec') as string };
  expect(warnings).toMatchObject([warning, warning]);
});

test('in(dataSource.manager) writes outside the transaction, on purpose; the embedded engine has no second connection', async () => {
  const failing = database.transaction(async () => {
    await notes.in(dataSource.manager).insertOnce(undefined, { text: 'outside' });
    throw new Error('undone');
  });
  const isEmbedded = engine === 'embedded';
  await expect(failing).rejects.toThrow(isEmbedded ? /only connection of the embedded engine/ : 'undone');
  expect(await stored()).toEqual(isEmbedded ? [] : ['outside']);
});

test('a subscriber that registers after the first use is called', async () => {
  const heard: unknown[] = [];
  class Subscriber implements EntitySubscriberInterface<NoteEntity> {
    listenTo = (): typeof NoteEntity => NoteEntity;
    afterLoad = ({ text }: NoteEntity): void => void heard.push(text);
  }
  const id = await notes.insertOnce(undefined, { text: 'heard' });
  await notes.find(id);
  const subscriber = new Subscriber();
  dataSource.subscribers.push(subscriber);
  await notes.find(id);
  dataSource.subscribers.pop();
  await notes.find(id);
  expect(heard).toEqual(['heard']);
});

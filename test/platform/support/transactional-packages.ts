import { Injectable, Module } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import {
  ClsPluginTransactional,
  Transactional as TransactionalByCls,
  TransactionHost,
} from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule, ClsService } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import { addTransactionalDataSource, initializeTransactionalContext, Transactional } from 'typeorm-transactional';
import { Database } from '#postgres';
import { createApplication, PlatformModule, readConfig } from '#service';
import { PET_STORE } from '../../../src/app.description.js';
import { COUNT_NOTES, CREATE_NOTES, INSERT_NOTE, NoteEntity, Notes } from '../../support/notes.js';

/*
 * The transactions of typeorm-transactional and nestjs-cls, as extending.md shows them. A program of its own: Jest cannot load packages
 * of CommonJS that require Nest. Prints, for a failed and a completed transaction of each, what it has seen and what is stored.
 */

@Injectable()
class Writers {
  constructor(
    private readonly notes: Notes,
    private readonly database: Database,
    private readonly host: TransactionHost<TransactionalAdapterTypeOrm>,
  ) {}

  @Transactional()
  async byTypeOrm(fails: boolean): Promise<unknown[]> {
    const id = await this.notes.insertOnce(undefined, { text: 'shared' });
    await this.database.write(INSERT_NOTE, ['written']);
    await this.database.transaction((own) => own.run(INSERT_NOTE, ['savepoint']));
    const seen = [(await this.notes.find(id))?.text, await this.database.read(COUNT_NOTES, [])];
    if (fails) throw new Error('undone');
    return seen;
  }

  @TransactionalByCls()
  async byCls(fails: boolean): Promise<unknown[]> {
    const own = this.notes.in(this.host.tx);
    const id = await own.insertOnce(undefined, { text: 'shared' });
    const seen = [(await own.find(id))?.text];
    if (fails) throw new Error('undone');
    return seen;
  }
}

@Module({
  imports: [
    PlatformModule.forRoot(PET_STORE),
    TypeOrmModule.forFeature([NoteEntity]),
    ClsModule.forRoot({
      plugins: [
        new ClsPluginTransactional({
          adapter: new TransactionalAdapterTypeOrm({ dataSourceToken: getDataSourceToken() }),
        }),
      ],
    }),
  ],
  providers: [Notes, Writers],
})
class AppModule {}

initializeTransactionalContext();
const app = await createApplication(AppModule, await readConfig(PET_STORE, { ...process.env, LOG_LEVEL: 'error' }));
const dataSource = app.get(DataSource);
await dataSource.query(CREATE_NOTES);
addTransactionalDataSource({ name: 'default', dataSource, patch: true });
const [writers, cls] = [app.get(Writers), app.get(ClsService)];
const results: unknown[] = [];
for (const fails of [true, false])
  for (const write of [() => writers.byTypeOrm(fails), () => cls.run(() => writers.byCls(fails))]) {
    const seen = await write().catch(({ message }: Error) => message);
    const rows = await dataSource.query<{ text: string }[]>('DELETE FROM test_note RETURNING text');
    // TypeORM returns the rows of a DELETE, and their number.
    results.push([seen, (rows[0] as unknown as { text: string }[]).map(({ text }) => text).sort()]);
  }
await app.close();
process.stdout.write(JSON.stringify(results));

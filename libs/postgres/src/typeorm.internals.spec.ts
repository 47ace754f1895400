import { EventEmitter } from 'node:events';
import type { ClientBase } from 'pg';
import { driverWith, type PostgresDriver, PostgresQueryRunner } from './typeorm.internals.js';

test('query runners take their connection from the lease, and return it, broken ones with their error', async () => {
  const seen: unknown[] = [];
  const client = new EventEmitter() as unknown as ClientBase;
  const driver = { connectedQueryRunners: [], obtainMasterConnection: () => Promise.reject(new Error('not leased')) };
  const open = async (): Promise<PostgresQueryRunner> => {
    const leased = driverWith(driver as unknown as PostgresDriver, () =>
      Promise.resolve([client, (error) => seen.push(error?.message ?? 'released')]),
    );
    const queryRunner = new PostgresQueryRunner(leased, 'master');
    expect(await queryRunner.connect()).toBe(client);
    return queryRunner;
  };
  await (await open()).release();
  const queryRunner = await open();
  client.emit('error', new Error('broken'));
  expect(seen).toEqual(['released', 'broken']);
  expect(queryRunner.isReleased).toBe(true);
});

import { EventEmitter } from 'node:events';
import type { ClientBase } from 'pg';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';
import type { Reach } from '#runtime';

export { type PostgresDriver, PostgresQueryRunner };

/** A connection, and what returns it; an error says that it is broken. */
type Lease = [client: ClientBase, release: (error?: Error) => void];

/** A driver whose query runners get their connection from `lease`. */
export function driverWith(driver: PostgresDriver, lease: () => Promise<Lease>): PostgresDriver {
  return Object.create(driver, { obtainMasterConnection: { value: lease } }) as PostgresDriver;
}

export const TYPEORM_QUERY_RUNNERS: Reach & { check(withLease?: typeof driverWith): Promise<string | undefined> } = {
  dependency: 'typeorm',
  touches: 'PostgresQueryRunner by its path, and obtainMasterConnection of its driver',
  why: 'connection failures as 503 with TypeORM too, and broken connections that leave the pool',
  check: async (withLease: typeof driverWith = driverWith) => {
    const seen: unknown[] = [];
    const client = new EventEmitter() as unknown as ClientBase;
    const driver = { connectedQueryRunners: [], obtainMasterConnection: () => Promise.reject(new Error('not leased')) };
    const open = async (): Promise<PostgresQueryRunner> => {
      const leased = withLease(driver as unknown as PostgresDriver, () =>
        Promise.resolve([client, (error) => seen.push(error?.message ?? 'released')]),
      );
      const queryRunner = new PostgresQueryRunner(leased, 'master');
      if ((await queryRunner.connect()) !== client) seen.push('another connection');
      return queryRunner;
    };
    await (await open()).release();
    const queryRunner = await open();
    client.emit('error', new Error('broken'));
    return seen.join() === 'released,broken' && queryRunner.isReleased
      ? undefined
      : `its query runners take and return connections in another way (${seen.join()})`;
  },
};

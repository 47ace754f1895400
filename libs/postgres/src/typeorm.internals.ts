import type { ClientBase } from 'pg';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';

export { type PostgresDriver, PostgresQueryRunner };

/** A connection, and what returns it; an error says that it is broken. */
type Lease = [client: ClientBase, release: (error?: Error) => void];

/** A driver whose query runners get their connection from `lease`. */
export function driverWith(driver: PostgresDriver, lease: () => Promise<Lease>): PostgresDriver {
  return Object.create(driver, { obtainMasterConnection: { value: lease } }) as PostgresDriver;
}

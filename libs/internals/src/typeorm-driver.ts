/* TypeORM exports its driver of PostgreSQL by these paths only. A start fails if one is missing. */
export type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
export { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';

import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateKeyUsage1795219320000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    // One write of usage updates a thousand rows, so all rows of many pages at once. With room for every row a second
    // time, no update writes an index (HOT), and the table stays at this size.
    await queryRunner.query(`
      CREATE TABLE key_usage (
        key_id bigint NOT NULL CONSTRAINT fk_key_usage_key REFERENCES api_key,
        operation text NOT NULL,
        day date NOT NULL,
        calls bigint NOT NULL,
        last_call_at timestamptz NOT NULL,
        last_user_agent text,
        CONSTRAINT pk_key_usage PRIMARY KEY (key_id, day, operation)
      ) WITH (fillfactor = 45)`);
    // The last day of a key has its last use. Reports on an operation and the removal of old days read a range of days.
    await queryRunner.query(`CREATE INDEX ix_key_usage_day_operation ON key_usage (day, operation)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE key_usage`);
  }
}

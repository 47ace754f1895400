import type { MigrationInterface, QueryRunner } from 'typeorm';

export class TuneTablesOfManyUpdates1795305660000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    // The same rows are updated again and again. With free space in their page, an update writes no index (HOT), and the
    // next access to the page removes the old version.
    await queryRunner.query(`ALTER TABLE key_usage SET (fillfactor = 70)`);
    await queryRunner.query(`ALTER TABLE api_key SET (fillfactor = 70)`);
    // Every row is deleted after a day. Vacuum when a hundredth of the rows is dead, not a fifth: each run is short, and
    // neither the table nor its index of ages grows beyond the rows of a day.
    await queryRunner.query(`
      ALTER TABLE idempotency_key SET (
        autovacuum_vacuum_scale_factor = 0.01,
        autovacuum_vacuum_insert_scale_factor = 0.05,
        autovacuum_analyze_scale_factor = 0.02
      )`);
    // Each stored key would lock its client's row. Concurrent locks of one row make a multixact each time, which vacuum
    // must clean up. Keys expire after a day, also those of a client that is gone.
    await queryRunner.query(`ALTER TABLE idempotency_key DROP CONSTRAINT fk_idempotency_key_client`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DELETE FROM idempotency_key WHERE client_id NOT IN (SELECT id FROM client)`);
    await queryRunner.query(`
      ALTER TABLE idempotency_key ADD CONSTRAINT fk_idempotency_key_client
      FOREIGN KEY (client_id) REFERENCES client ON DELETE CASCADE`);
    await queryRunner.query(`
      ALTER TABLE idempotency_key RESET (
        autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor
      )`);
    await queryRunner.query(`ALTER TABLE api_key RESET (fillfactor)`);
    await queryRunner.query(`ALTER TABLE key_usage RESET (fillfactor)`);
  }
}

import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateIdempotencyKey1795219380000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    // Collation "C" compares bytes. An update of the operating system can change other collations, which corrupts the unique
    // index and lets a key in twice.
    // client_id is no foreign key: each stored key would lock its client's row, and concurrent locks of one row make a
    // multixact each time, which vacuum must clean up. Keys expire after a day, also those of a client that is gone.
    // Vacuum when a hundredth of the rows is dead, not a fifth: each run is short, and neither the table nor its index of
    // ages grows beyond the rows of a day.
    await queryRunner.query(`
      CREATE TABLE idempotency_key (
        client_id bigint NOT NULL,
        key varchar(255) COLLATE "C" NOT NULL
          CONSTRAINT ck_idempotency_key_key CHECK (char_length(key) BETWEEN 1 AND 255),
        fingerprint bytea NOT NULL
          CONSTRAINT ck_idempotency_key_fingerprint CHECK (octet_length(fingerprint) = 32),
        result text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT pk_idempotency_key PRIMARY KEY (client_id, key)
      ) WITH (
        autovacuum_vacuum_scale_factor = 0.01,
        autovacuum_vacuum_insert_scale_factor = 0.05,
        autovacuum_analyze_scale_factor = 0.02
      )`);
    // Expired keys are removed oldest first.
    await queryRunner.query(`CREATE INDEX ix_idempotency_key_created_at ON idempotency_key (created_at)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE idempotency_key`);
  }
}

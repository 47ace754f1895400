import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateIdempotencyKey1795237200000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    // Collation "C" compares bytes. An update of the operating system can change other collations, which corrupts the unique
    // index and lets a key in twice.
    await queryRunner.query(`
      CREATE TABLE idempotency_key (
        client_id bigint NOT NULL CONSTRAINT fk_idempotency_key_client REFERENCES client ON DELETE CASCADE,
        key varchar(255) COLLATE "C" NOT NULL
          CONSTRAINT ck_idempotency_key_key CHECK (char_length(key) BETWEEN 1 AND 255),
        fingerprint bytea NOT NULL
          CONSTRAINT ck_idempotency_key_fingerprint CHECK (octet_length(fingerprint) = 32),
        result text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT pk_idempotency_key PRIMARY KEY (client_id, key)
      )`);
    // Expired keys are removed oldest first.
    await queryRunner.query(`CREATE INDEX ix_idempotency_key_created_at ON idempotency_key (created_at)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE idempotency_key`);
  }
}

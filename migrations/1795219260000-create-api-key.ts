import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateApiKey1795219260000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE api_key (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_api_key PRIMARY KEY,
        name text NOT NULL,
        prefix text NOT NULL,
        hash bytea NOT NULL CONSTRAINT uq_api_key_hash UNIQUE
          CONSTRAINT ck_api_key_hash CHECK (octet_length(hash) = 32),
        scopes text[] NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz,
        last_used_at timestamptz
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE api_key`);
  }
}

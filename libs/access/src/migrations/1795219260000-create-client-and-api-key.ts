import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateClientAndApiKey1795219260000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE client (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_client PRIMARY KEY,
        name text NOT NULL CONSTRAINT uq_client_name UNIQUE,
        created_at timestamptz NOT NULL DEFAULT now()
      )`);
    await queryRunner.query(`
      CREATE TABLE api_key (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_api_key PRIMARY KEY,
        client_id bigint NOT NULL CONSTRAINT fk_api_key_client REFERENCES client,
        predecessor_id bigint CONSTRAINT fk_api_key_predecessor REFERENCES api_key
          CONSTRAINT uq_api_key_predecessor UNIQUE,
        prefix text NOT NULL,
        hash bytea NOT NULL CONSTRAINT uq_api_key_hash UNIQUE
          CONSTRAINT ck_api_key_hash CHECK (octet_length(hash) = 32),
        scopes text[] NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz,
        revoked_reason text
      )`);
    await queryRunner.query(`CREATE INDEX ix_api_key_client ON api_key (client_id)`);
    await createTrigger(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE api_key, client`);
    await queryRunner.query(`DROP FUNCTION notify_api_key_change()`);
  }
}

/** Creates the trigger that notifies every instance, which then drops what it has cached of the row. */
async function createTrigger(queryRunner: QueryRunner): Promise<void> {
  // Everybody who may connect may listen, so the message has no hash.
  await queryRunner.query(`
    CREATE FUNCTION notify_api_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_notify('api_key_change', CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END::text);
      RETURN NULL;
    END $$`);
  // For each row: a statement that changes no row notifies nobody.
  await queryRunner.query(`
    CREATE TRIGGER tr_api_key_change
    AFTER INSERT OR DELETE OR UPDATE OF hash, client_id, scopes, expires_at, revoked_at ON api_key
    FOR EACH ROW EXECUTE FUNCTION notify_api_key_change()`);
}

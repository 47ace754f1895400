import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateClient1795228920000 implements MigrationInterface {
  // Earlier versions read and write api_key.name, which this drops.
  readonly backwardCompatible = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE client (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_client PRIMARY KEY,
        name text NOT NULL CONSTRAINT uq_client_name UNIQUE,
        rate_limit_per_minute integer CONSTRAINT ck_client_rate_limit_per_minute CHECK (rate_limit_per_minute >= 0),
        created_at timestamptz NOT NULL DEFAULT now()
      )`);
    // A key's name has been the name of its user. So keys with the same name become keys of one client.
    await queryRunner.query(`
      INSERT INTO client (name, created_at) SELECT name, min(created_at) FROM api_key GROUP BY name ORDER BY min(id)`);
    await queryRunner.query(`
      ALTER TABLE api_key
        ADD client_id bigint CONSTRAINT fk_api_key_client REFERENCES client,
        ADD predecessor_id bigint CONSTRAINT fk_api_key_predecessor REFERENCES api_key
          CONSTRAINT uq_api_key_predecessor UNIQUE,
        ADD revoked_reason text`);
    await queryRunner.query(`UPDATE api_key SET client_id = client.id FROM client WHERE client.name = api_key.name`);
    await queryRunner.query(`ALTER TABLE api_key ALTER client_id SET NOT NULL, DROP name`);
    await queryRunner.query(`CREATE INDEX ix_api_key_client ON api_key (client_id)`);
    // Every instance listens, and then drops its cached keys. Updates of last_used_at are too frequent to notify.
    await queryRunner.query(`
      CREATE FUNCTION notify_api_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_notify('api_key_change', '');
        RETURN NULL;
      END $$`);
    await queryRunner.query(`
      CREATE TRIGGER tr_api_key_change
      AFTER INSERT OR DELETE OR UPDATE OF hash, client_id, scopes, expires_at, revoked_at ON api_key
      FOR EACH ROW EXECUTE FUNCTION notify_api_key_change()`);
    await queryRunner.query(`
      CREATE TRIGGER tr_client_change
      AFTER UPDATE OF name, rate_limit_per_minute ON client
      FOR EACH ROW EXECUTE FUNCTION notify_api_key_change()`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TRIGGER tr_client_change ON client`);
    await queryRunner.query(`DROP TRIGGER tr_api_key_change ON api_key`);
    await queryRunner.query(`DROP FUNCTION notify_api_key_change()`);
    await queryRunner.query(`ALTER TABLE api_key ADD name text`);
    await queryRunner.query(`UPDATE api_key SET name = client.name FROM client WHERE client.id = api_key.client_id`);
    await queryRunner.query(`
      ALTER TABLE api_key ALTER name SET NOT NULL, DROP client_id, DROP predecessor_id, DROP revoked_reason`);
    await queryRunner.query(`DROP TABLE client`);
  }
}

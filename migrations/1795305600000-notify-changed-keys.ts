import type { MigrationInterface, QueryRunner } from 'typeorm';

export class NotifyChangedKeys1795305600000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TRIGGER tr_api_key_change ON api_key`);
    await queryRunner.query(`DROP TRIGGER tr_client_change ON client`);
    // Names the row, so that instances drop only what has changed. Everybody who may connect may listen: no hash here.
    await queryRunner.query(`
      CREATE OR REPLACE FUNCTION notify_api_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_notify('api_key_change', TG_TABLE_NAME || ' ' || CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
        RETURN NULL;
      END $$`);
    // For each row: a statement that changes no row notifies nobody. Updates of last_used_at are too frequent to notify.
    await queryRunner.query(`
      CREATE TRIGGER tr_api_key_change
      AFTER INSERT OR DELETE OR UPDATE OF hash, client_id, scopes, expires_at, revoked_at ON api_key
      FOR EACH ROW EXECUTE FUNCTION notify_api_key_change()`);
    await queryRunner.query(`
      CREATE TRIGGER tr_client_change
      AFTER UPDATE OF name, rate_limit_per_minute ON client
      FOR EACH ROW WHEN ((OLD.name, OLD.rate_limit_per_minute) IS DISTINCT FROM (NEW.name, NEW.rate_limit_per_minute))
      EXECUTE FUNCTION notify_api_key_change()`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TRIGGER tr_client_change ON client`);
    await queryRunner.query(`DROP TRIGGER tr_api_key_change ON api_key`);
    await queryRunner.query(`
      CREATE OR REPLACE FUNCTION notify_api_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
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
}

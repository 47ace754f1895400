import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CompareMigrationsAsBytes1795824000000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE schema_migration ALTER name TYPE varchar COLLATE "C"`);
    // Without a key, a publication of all tables makes PostgreSQL refuse UPDATE and DELETE. An operator may have added one.
    await queryRunner.query(`
      DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_index WHERE indrelid = 'typeorm_metadata'::regclass AND indisprimary) THEN
          ALTER TABLE typeorm_metadata
            ADD id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_typeorm_metadata PRIMARY KEY;
        END IF;
      END $$`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE schema_migration ALTER name TYPE varchar COLLATE "default"`);
    await queryRunner.query(`ALTER TABLE typeorm_metadata DROP CONSTRAINT IF EXISTS pk_typeorm_metadata`);
    await queryRunner.query(`ALTER TABLE typeorm_metadata DROP COLUMN IF EXISTS id`);
  }
}

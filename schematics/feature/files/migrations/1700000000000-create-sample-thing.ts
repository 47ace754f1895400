import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateSampleThing1700000000000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE sample_table (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_sample_table PRIMARY KEY,
        name varchar(255) NOT NULL CONSTRAINT ck_sample_table_name CHECK (char_length(name) >= 1)
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE sample_table');
  }
}

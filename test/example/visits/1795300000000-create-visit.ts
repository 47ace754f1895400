import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateVisit1795300000000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE visit (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_visit PRIMARY KEY,
        pet_id bigint NOT NULL,
        reason varchar(200) NOT NULL CONSTRAINT ck_visit_reason CHECK (char_length(reason) BETWEEN 1 AND 200),
        weight_kg double precision NOT NULL
      )`);
    await queryRunner.query('CREATE INDEX ix_visit_pet_id ON visit (pet_id, id)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE visit');
  }
}

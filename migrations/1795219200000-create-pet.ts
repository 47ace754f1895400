import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreatePet1795219200000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`CREATE TYPE pet_status AS ENUM ('available', 'pending', 'sold')`);
    await queryRunner.query(`
      CREATE TABLE pet (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_pet PRIMARY KEY,
        name varchar(255) NOT NULL CONSTRAINT ck_pet_name CHECK (char_length(name) BETWEEN 1 AND 255),
        category_id bigint NOT NULL,
        status pet_status NOT NULL DEFAULT 'available'
      )`);
    // A page of one status is a range of this index. A page of all pets is a range of the primary key.
    await queryRunner.query(`CREATE INDEX ix_pet_status_id ON pet (status, id)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE pet`);
    await queryRunner.query(`DROP TYPE pet_status`);
  }
}

import type { Migration } from 'petstore-service/platform';
import type { QueryRunner } from 'typeorm';

export class CreateStoreOrder1795400000000 implements Migration {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE store_order (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_store_order PRIMARY KEY,
        pet_id bigint NOT NULL CONSTRAINT fk_store_order_pet REFERENCES pet,
        quantity integer NOT NULL CONSTRAINT ck_store_order_quantity CHECK (quantity BETWEEN 1 AND 100),
        ordered_at timestamptz NOT NULL
      )`);
    await queryRunner.query('CREATE INDEX ix_store_order_pet_id ON store_order (pet_id, id)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE store_order');
  }
}

import type { Migration } from 'petstore-service/platform';
import type { QueryRunner } from 'typeorm';

export class CreateStoreOrder1795400000000 implements Migration {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE TABLE product (id bigint CONSTRAINT pk_product PRIMARY KEY, name text NOT NULL)');
    await queryRunner.query(`INSERT INTO product VALUES (1, 'Lead'), (2, 'Bowl')`);
    await queryRunner.query(`
      CREATE TABLE store_order (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_store_order PRIMARY KEY,
        product_id bigint NOT NULL CONSTRAINT fk_store_order_product REFERENCES product,
        quantity integer NOT NULL CONSTRAINT ck_store_order_quantity CHECK (quantity BETWEEN 1 AND 100),
        ordered_at timestamptz NOT NULL
      )`);
    await queryRunner.query('CREATE INDEX ix_store_order_product_id ON store_order (product_id, id)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE store_order, product');
  }
}

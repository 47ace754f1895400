import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** An order of a product. */
@Entity('store_order')
@Index('ix_store_order_product_id', ['productId', 'id'])
@Check('ck_store_order_quantity', 'quantity BETWEEN 1 AND 100')
export class OrderEntity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_store_order',
  })
  id: string;

  @Column({ name: 'product_id', type: 'bigint' })
  productId: string;

  @Column({ type: 'integer' })
  quantity: number;

  @Column({ name: 'ordered_at', type: 'timestamptz' })
  orderedAt: Date;
}

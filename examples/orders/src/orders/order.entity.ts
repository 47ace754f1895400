import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import { ProductEntity } from './product.entity.js';

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

  @ManyToOne(() => ProductEntity)
  @JoinColumn({ name: 'product_id', foreignKeyConstraintName: 'fk_store_order_product' })
  product?: ProductEntity;

  @Column({ type: 'integer' })
  quantity: number;

  @Column({ name: 'ordered_at', type: 'timestamptz' })
  orderedAt: Date;
}

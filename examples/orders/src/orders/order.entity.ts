import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** A pet that is ordered. */
@Entity('store_order')
@Index('ix_store_order_pet_id', ['petId', 'id'])
@Check('ck_store_order_quantity', 'quantity BETWEEN 1 AND 100')
export class OrderEntity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_store_order',
  })
  id: string;

  @Column({ name: 'pet_id', type: 'bigint' })
  petId: string;

  @Column({ type: 'integer' })
  quantity: number;

  @Column({ name: 'ordered_at', type: 'timestamptz' })
  orderedAt: Date;
}

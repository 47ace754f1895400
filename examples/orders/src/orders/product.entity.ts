import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What can be ordered. */
@Entity('product')
export class ProductEntity {
  @PrimaryColumn({ type: 'bigint', primaryKeyConstraintName: 'pk_product' })
  id: string;

  @Column({ type: 'text' })
  name: string;
}

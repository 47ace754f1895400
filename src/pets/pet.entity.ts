import { Check, Column, Entity, Index } from 'typeorm';

/** Availability of an animal. */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof PET_STATUSES)[number];

/**
 * An animal as it is stored. An int64 is its canonical decimal text here, as PostgreSQL and TypeORM give it: exact, and
 * valid in keys, relations and conditions. `toPet` makes it a bigint.
 */
@Entity({ name: 'pet' })
@Check('ck_pet_name', 'char_length(name) BETWEEN 1 AND 255')
@Index('ix_pet_status_id', ['status', 'id'])
export class PetEntity {
  @Column({
    type: 'bigint',
    primary: true,
    generated: 'identity',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_pet',
  })
  id: string;

  @Column({ type: 'varchar', length: 255 })
  name: string;

  @Column({ name: 'category_id', type: 'bigint' })
  categoryId: string;

  @Column({ type: 'enum', enum: PET_STATUSES, enumName: 'pet_status', default: 'available' })
  status: PetStatus;
}

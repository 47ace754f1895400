import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** Availability of a pet. */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof PET_STATUSES)[number];

/** Largest length of a name, in characters. */
export const MAX_NAME_LENGTH = 255;

/**
 * A stored pet. Each int64 is a decimal string, as PostgreSQL and TypeORM return it: exact, and valid in keys,
 * relations and conditions. `toPet` converts it to a bigint.
 */
@Entity({ name: 'pet' })
@Check('ck_pet_name', `char_length(name) BETWEEN 1 AND ${MAX_NAME_LENGTH}`)
@Index('ix_pet_status_id', ['status', 'id'])
export class PetEntity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_pet',
  })
  id: string;

  @Column({ type: 'varchar', length: MAX_NAME_LENGTH })
  name: string;

  @Column({ name: 'category_id', type: 'bigint' })
  categoryId: string;

  @Column({ type: 'enum', enum: PET_STATUSES, enumName: 'pet_status', default: 'available' })
  status: PetStatus;
}

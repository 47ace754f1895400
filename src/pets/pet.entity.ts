import { Check, Column, Entity, Index } from 'typeorm';

/** Availability of an animal. */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof PET_STATUSES)[number];

/** PostgreSQL's bigint as text on the wire, exact in both directions. */
const int64 = {
  to: (value?: bigint): string | undefined => value?.toString(),
  from: (value: string): bigint => BigInt(value),
};

/** An animal as it is stored. */
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
    transformer: int64,
  })
  id: bigint;

  @Column({ type: 'varchar', length: 255 })
  name: string;

  @Column({ name: 'category_id', type: 'bigint', transformer: int64 })
  categoryId: bigint;

  @Column({ type: 'enum', enum: PET_STATUSES, enumName: 'pet_status', default: 'available' })
  status: PetStatus;
}

/** The columns of an animal as PostgreSQL writes them: int64 as its decimal numeral, exact, which is JSON's too. */
export type PetRow = readonly [id: string, name: string, categoryId: string, status: PetStatus];

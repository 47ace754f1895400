import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** A visit of a pet to a veterinarian. */
@Entity('visit')
@Index('ix_visit_pet_id', ['petId', 'id'])
@Check('ck_visit_reason', 'char_length(reason) BETWEEN 1 AND 200')
export class VisitEntity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_visit',
  })
  id: string;

  @Column({ name: 'pet_id', type: 'bigint' })
  petId: string;

  @Column({ type: 'varchar', length: 200 })
  reason: string;

  @Column({ name: 'weight_kg', type: 'double precision' })
  weightKg: number;
}

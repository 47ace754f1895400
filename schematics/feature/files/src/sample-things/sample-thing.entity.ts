import { Check, Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/**
 * A row of the table `sample_table`, which the migration 1700000000000-create-sample-thing makes. An int64 is its decimal
 * text here; `toSampleThing` converts it to a bigint.
 */
@Entity('sample_table')
@Check('ck_sample_table_name', 'char_length(name) >= 1')
export class SampleThingEntity {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_sample_table',
  })
  id: string;

  @Column({ type: 'varchar', length: 255 })
  name: string;
}

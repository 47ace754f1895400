import { Check, Column, Entity, Unique } from 'typeorm';

/**
 * An application that calls the service. Keys are replaced; limits and usage belong to the client.
 *
 * The platform reads and writes this table in SQL, without the entity. The entity exists so that a test can compare the
 * table with the migrations, and so that entities of modules can refer to it.
 */
@Entity({ name: 'client' })
@Unique('uq_client_name', ['name'])
@Check('ck_client_rate_limit_per_minute', 'rate_limit_per_minute >= 0')
export class ClientEntity {
  @Column({
    type: 'bigint',
    primary: true,
    generated: 'identity',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_client',
  })
  id: string;

  @Column({ type: 'text' })
  name: string;

  /** Requests per minute; 0 means unlimited, null means RATE_LIMIT_PER_MINUTE. */
  @Column({ name: 'rate_limit_per_minute', type: 'integer', nullable: true })
  rateLimitPerMinute: number | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;
}

import { Check, Column, Entity, Unique } from 'typeorm';

/**
 * An application that calls the service. Its keys come and go; limits and usage belong to the client.
 *
 * The statements of the platform are SQL. Its entities declare the tables, so that a test compares them with the migrations
 * and a module can relate its own entities to them.
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

  /** Requests a minute, 0 for any number; null is RATE_LIMIT_PER_MINUTE. */
  @Column({ name: 'rate_limit_per_minute', type: 'integer', nullable: true })
  rateLimitPerMinute: number | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;
}

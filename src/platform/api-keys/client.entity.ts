import { Check, Column, Entity, Unique } from 'typeorm';

/** PostgreSQL's bigint as text on the wire, exact in both directions. */
export const int64 = {
  to: (value?: bigint | null): string | null | undefined => value?.toString() ?? (value as null | undefined),
  from: (value: string | null): bigint | null => (value === null ? null : BigInt(value)),
};

/** An application that calls the service. Its keys come and go; limits and usage are the client's. */
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
    transformer: int64,
  })
  id: bigint;

  @Column({ type: 'text' })
  name: string;

  /** Requests a minute, 0 for any number; null is RATE_LIMIT_PER_MINUTE. */
  @Column({ name: 'rate_limit_per_minute', type: 'integer', nullable: true })
  rateLimitPerMinute: number | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;
}

import { Check, Column, Entity, Unique } from 'typeorm';

/** PostgreSQL's bigint as text on the wire, exact in both directions. */
const int64 = {
  to: (value?: bigint): string | undefined => value?.toString(),
  from: (value: string): bigint => BigInt(value),
};

/** An API key as it is stored: all but the secret. */
@Entity({ name: 'api_key' })
@Unique('uq_api_key_hash', ['hash'])
@Check('ck_api_key_hash', 'octet_length(hash) = 32')
export class ApiKeyEntity {
  @Column({
    type: 'bigint',
    primary: true,
    generated: 'identity',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_api_key',
    transformer: int64,
  })
  id: bigint;

  /** Who uses the key. */
  @Column({ type: 'text' })
  name: string;

  /** First characters of the secret, for display. */
  @Column({ type: 'text' })
  prefix: string;

  /** SHA-256 of the secret. */
  @Column({ type: 'bytea' })
  hash: Buffer;

  @Column({ type: 'text', array: true })
  scopes: string[];

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;

  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt: Date | null;

  @Column({ name: 'last_used_at', type: 'timestamptz', nullable: true })
  lastUsedAt: Date | null;
}

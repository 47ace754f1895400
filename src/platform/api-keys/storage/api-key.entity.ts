import { Check, Column, Entity, ForeignKey, Index, Unique } from 'typeorm';
import { ClientEntity } from './client.entity.js';

/** A stored API key, without its secret. `ClientEntity` explains why this entity exists. */
@Entity({ name: 'api_key' })
@Unique('uq_api_key_hash', ['hash'])
@Unique('uq_api_key_predecessor', ['predecessorId'])
@Index('ix_api_key_client', ['clientId'])
@Check('ck_api_key_hash', 'octet_length(hash) = 32')
@ForeignKey(() => ClientEntity, ['clientId'], ['id'], { name: 'fk_api_key_client' })
@ForeignKey(() => ApiKeyEntity, ['predecessorId'], ['id'], { name: 'fk_api_key_predecessor' })
export class ApiKeyEntity {
  @Column({
    type: 'bigint',
    primary: true,
    generated: 'identity',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'pk_api_key',
  })
  id: string;

  /** The client that uses the key. */
  @Column({ name: 'client_id', type: 'bigint' })
  clientId: string;

  /** The key that this one replaces. A key is replaced at most once. */
  @Column({ name: 'predecessor_id', type: 'bigint', nullable: true })
  predecessorId: string | null;

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

  @Column({ name: 'revoked_reason', type: 'text', nullable: true })
  revokedReason: string | null;
}

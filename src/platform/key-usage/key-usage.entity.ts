import { Column, Entity, ForeignKey, Index } from 'typeorm';
import { ApiKeyEntity } from '../api-keys/api-key.entity.js';
import { int64 } from '../api-keys/client.entity.js';

/** What a key called on one day (UTC). The client is the key's. */
@Entity({ name: 'key_usage' })
@Index('ix_key_usage_operation_day', ['operation', 'day'])
@ForeignKey(() => ApiKeyEntity, ['keyId'], ['id'], { name: 'fk_key_usage_key' })
export class KeyUsageEntity {
  @Column({
    name: 'key_id',
    type: 'bigint',
    primary: true,
    primaryKeyConstraintName: 'pk_key_usage',
    transformer: int64,
  })
  keyId: bigint;

  /** The operationId. */
  @Column({ type: 'text', primary: true, primaryKeyConstraintName: 'pk_key_usage' })
  operation: string;

  @Column({ type: 'date', primary: true, primaryKeyConstraintName: 'pk_key_usage' })
  day: string;

  @Column({ type: 'bigint', transformer: int64 })
  calls: bigint;

  @Column({ name: 'last_call_at', type: 'timestamptz' })
  lastCallAt: Date;

  /** `User-Agent` of the last call, its beginning; null when it sent none. */
  @Column({ name: 'last_user_agent', type: 'text', nullable: true })
  lastUserAgent: string | null;
}

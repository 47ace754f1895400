import { Column, Entity, ForeignKey, Index } from 'typeorm';
import { ApiKeyEntity } from '../api-keys/storage/api-key.entity.js';

/** Calls of one operation with one key on one day (UTC). `ClientEntity` explains why this entity exists. */
@Entity({ name: 'key_usage' })
@Index('ix_key_usage_operation_day', ['operation', 'day'])
@ForeignKey(() => ApiKeyEntity, ['keyId'], ['id'], { name: 'fk_key_usage_key' })
export class KeyUsageEntity {
  @Column({
    name: 'key_id',
    type: 'bigint',
    primary: true,
    primaryKeyConstraintName: 'pk_key_usage',
  })
  keyId: string;

  /** The operationId. */
  @Column({ type: 'text', primary: true, primaryKeyConstraintName: 'pk_key_usage' })
  operation: string;

  @Column({ type: 'date', primary: true, primaryKeyConstraintName: 'pk_key_usage' })
  day: string;

  @Column({ type: 'bigint' })
  calls: string;

  @Column({ name: 'last_call_at', type: 'timestamptz' })
  lastCallAt: Date;

  /** The first 200 characters of the last call's `User-Agent`; null when the call had none. */
  @Column({ name: 'last_user_agent', type: 'text', nullable: true })
  lastUserAgent: string | null;
}

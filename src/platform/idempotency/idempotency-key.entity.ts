import { Check, Column, Entity, ForeignKey, Index } from 'typeorm';
import { ClientEntity, int64 } from '../api-keys/client.entity.js';

/** What a request with an `Idempotency-Key` has created, stored together with it. */
@Entity({ name: 'idempotency_key' })
@Check('ck_idempotency_key_key', 'char_length(key) BETWEEN 1 AND 255')
@Check('ck_idempotency_key_fingerprint', 'octet_length(fingerprint) = 32')
@Index('ix_idempotency_key_created_at', ['createdAt'])
@ForeignKey(() => ClientEntity, ['clientId'], ['id'], { name: 'fk_idempotency_key_client', onDelete: 'CASCADE' })
export class IdempotencyKeyEntity {
  @Column({
    name: 'client_id',
    type: 'bigint',
    primary: true,
    primaryKeyConstraintName: 'pk_idempotency_key',
    transformer: int64,
  })
  clientId: bigint;

  @Column({
    type: 'varchar',
    length: 255,
    collation: 'C',
    primary: true,
    primaryKeyConstraintName: 'pk_idempotency_key',
  })
  key: string;

  /** SHA-256 of what the request meant. */
  @Column({ type: 'bytea' })
  fingerprint: Buffer;

  /** What is needed beside the request itself to give its first answer again; of a created row its id. */
  @Column({ type: 'text' })
  result: string;

  /** By the clock of the database. */
  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;
}

import { Check, Column, Entity, Index } from 'typeorm';

/**
 * An `Idempotency-Key` and the result of its request. `ClientEntity` explains why this entity exists. There is no foreign
 * key, because each new row would lock its client's row.
 */
@Entity({ name: 'idempotency_key' })
@Check('ck_idempotency_key_key', 'char_length(key) BETWEEN 1 AND 255')
@Check('ck_idempotency_key_fingerprint', 'octet_length(fingerprint) = 32')
@Index('ix_idempotency_key_created_at', ['createdAt'])
export class IdempotencyKeyEntity {
  @Column({
    name: 'client_id',
    type: 'bigint',
    primary: true,
    primaryKeyConstraintName: 'pk_idempotency_key',
  })
  clientId: string;

  @Column({
    type: 'varchar',
    length: 255,
    collation: 'C',
    primary: true,
    primaryKeyConstraintName: 'pk_idempotency_key',
  })
  key: string;

  /** SHA-256 of the request's operation and input. */
  @Column({ type: 'bytea' })
  fingerprint: Buffer;

  /** The text from which, with the request, the first answer can be repeated, such as the id of a created row. */
  @Column({ type: 'text' })
  result: string;

  /** The time by the clock of the database. */
  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;
}

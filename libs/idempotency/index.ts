export { insertOnceText } from './src/idempotency-key.repository.js';
export {
  IDEMPOTENCY_KEY_HEADER,
  IdempotencyKey,
  Idempotent,
  KEY_PATTERN,
  MAX_FIELD_LENGTH,
} from './src/idempotency-key.js';
export { Idempotency, IdempotencyModule, IdempotentInserts, type Kept } from './src/idempotency.js';
export { IDEMPOTENCY_MIGRATIONS } from './src/migrations.js';

export { insertOnceText } from './src/idempotency-key.repository.js';
export { IdempotencyKey, Idempotent } from './src/idempotency-key.js';
export { Idempotency, IdempotencyModule, IdempotentInserts, type Kept } from './src/idempotency.js';
export { IDEMPOTENCY_MIGRATIONS } from './src/migrations.js';

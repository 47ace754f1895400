export { ConstraintErrors, defineConstraintErrors, type ForeignKeyErrors } from './src/constraint-errors.js';
export { IdempotencyKey, Idempotent } from './src/idempotency/idempotency-key.js';
export { Idempotency, IdempotencyModule, type Kept } from './src/idempotency/idempotency.js';
export { DEFAULT_PAGE_SIZE, type Filters, Keyset, MAX_PAGE_SIZE } from './src/cursors.js';
export type { OrderBy, Page, PageQuery } from './src/cursors.js';
export { IDEMPOTENCY_MIGRATIONS } from './src/migrations.js';
export { ArraySchema, Created, CursorParameter, LimitParameter, Paged } from './src/resource.decorators.js';
export { SharedRepository } from './src/shared.repository.js';

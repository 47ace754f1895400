/*
 * `petstore-service/platform`: what features in packages of their own may use. Everything else of the platform is private
 * and may change in any release. `api-report/` has the declarations; CHANGELOG.md says what a release may change.
 */

// Handlers: access, deprecation and stability.
export { Authenticator, type Caller } from '../platform/auth/authenticator.js';
export { Public, PUBLIC_METADATA } from '../platform/auth/public.decorator.js';
export { RequireScopes } from '../platform/auth/require-scopes.decorator.js';
export { Deprecated, Stability } from '../platform/deprecation/deprecation.decorators.js';

// Input, and the members of answers.
export { BodyLimit } from '../platform/input/body.guard.js';
export {
  BooleanProperty,
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  OpaqueParameter,
  TextProperty,
} from '../platform/input/property.decorators.js';
export { PathId } from '../platform/input/path-id.decorator.js';
export { shared } from '../platform/json/json-text.js';

// Repositories of entities. Lists in pages.
export { SharedRepository } from '../platform/entities/shared.repository.js';
export { Keyset, type Page } from '../platform/paging/keyset.js';
export { CursorParameter, DEFAULT_PAGE_SIZE, LimitParameter, Paged } from '../platform/paging/paging.decorators.js';

// Safe retries.
export { Idempotency, type Kept } from '../platform/idempotency/idempotency.js';
export { IdempotencyKey, Idempotent } from '../platform/idempotency/idempotency-key.js';

// Errors. Exceptions of Nest have the codes of the catalogue by their status.
export { ApiError } from '../platform/errors/api-error.js';
export { defineError, INVALID_CURSOR, PRECONDITION_FAILED } from '../platform/errors/error-catalogue.js';
export { StartupError } from '../platform/errors/startup-error.js';

// The OpenAPI document.
export { FailsWith, Tag } from '../platform/openapi/openapi.decorators.js';
export { LOCATION_HEADER } from '../platform/openapi/response-headers.js';

// API keys, for modules that manage them.
export { ApiKeyRequestError } from '../platform/api-keys/api-key-format.js';
export { ApiKeysService } from '../platform/api-keys/api-keys.service.js';

// Services and repositories.
export { Config } from '../config.js';
export { Clock } from '../platform/clock.js';
export { Database, type Transaction } from '../platform/database/database.js';
export type { Migration } from '../platform/database/schema/migration-history.js';
export { Metrics } from '../platform/metrics/metrics.js';

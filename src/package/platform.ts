/*
 * `petstore-service/platform`: what features in packages of their own may use. Everything else of the platform is private
 * and may change in any release. `api-report/` has the declarations; CHANGELOG.md says what a release may change.
 */

// Handlers: access, deprecation and stability.
export { Public } from '../platform/auth/public.decorator.js';
export { RequireScopes } from '../platform/auth/require-scopes.decorator.js';
export { Deprecated, Stability, type StabilityLevel } from '../platform/deprecation/deprecation.decorators.js';

// Input: classes for bodies and queries, and exact JSON.
export { BodyLimit } from '../platform/input/body.guard.js';
export {
  BooleanParameter,
  BooleanProperty,
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  OpaqueParameter,
  TextProperty,
} from '../platform/input/property.decorators.js';
export { INT64_MAX, INT64_MIN, isInt64, parseInt64 } from '../platform/json/int64.js';
export { JsonBody } from '../platform/json/json-body.js';
export { writeJson } from '../platform/json/json-writer.js';
export { readJson } from '../platform/json/json-reader.js';

// Lists in pages.
export { type Filters, Keyset, type Page, type PageQuery } from '../platform/paging/keyset.js';
export {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  LimitParameter,
  MAX_PAGE_SIZE,
  Paged,
} from '../platform/paging/paging.decorators.js';

// Safe retries.
export { Idempotency } from '../platform/idempotency/idempotency.js';
export { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
export { insertOnceStatement } from '../platform/idempotency/idempotency-key.repository.js';
export { Idempotent } from '../platform/idempotency/idempotent.decorator.js';
export type { Kept } from '../platform/idempotency/stored-answer.js';

// Errors. Codes of the catalogue that only the platform throws are not exported.
export { ApiError, type ApiErrorOptions } from '../platform/errors/api-error.js';
export { ErrorBody } from '../platform/errors/error-body.js';
export {
  BAD_GATEWAY,
  BAD_REQUEST,
  CONFLICT,
  defineError,
  type ErrorDefinition,
  FORBIDDEN,
  GATEWAY_TIMEOUT,
  GONE,
  IDEMPOTENCY_KEY_REUSED,
  INTERNAL_ERROR,
  INVALID_CURSOR,
  INVALID_PARAMETER,
  NOT_FOUND,
  NOT_IMPLEMENTED,
  PRECONDITION_FAILED,
  RATE_LIMITED,
  UNAVAILABLE,
  UNPROCESSABLE_CONTENT,
  VALIDATION_FAILED,
} from '../platform/errors/error-catalogue.js';
export { StartupError } from '../platform/errors/startup-error.js';

// The OpenAPI document.
export { ArraySchema, FailsWith, Tag } from '../platform/openapi/openapi.decorators.js';
export { LOCATION_HEADER, NEXT_PAGE_HEADER } from '../platform/openapi/response-headers.js';

// API keys, for modules that manage them.
export {
  type ApiKeyListing,
  ApiKeyRequestError,
  ApiKeysService,
  type IssuedApiKey,
  type NewApiKey,
} from '../platform/api-keys/api-keys.service.js';
export type { Client, StoredApiKey } from '../platform/api-keys/storage/api-key.repository.js';

// Services and repositories.
export { Config } from '../config.js';
export { Clock } from '../platform/clock.js';
export { Database, type Statement, type Transaction } from '../platform/database/database.js';
export type { Migration } from '../platform/database/schema/migration-history.js';
export { ReadinessCheck } from '../platform/health/readiness-check.decorator.js';
export { Metrics } from '../platform/metrics/metrics.js';

// Requests and logging.
export { PassesRequestToLog } from '../platform/server/requests/served-request.js';
export type { RequestContext } from '../platform/server/requests/request-context.js';

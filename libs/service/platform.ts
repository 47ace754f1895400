/*
 * What features may import, here as `#platform` and in packages of their own as `petstore-service/platform`. Everything else of the
 * platform is private and may change in any release. `api-report/` has the declarations; CHANGELOG.md says what a release may change.
 * It loads the framework, so commands and definitions import `index.ts`.
 */

// Handlers: access, details of errors, deprecation.
export { Deprecated, FaultDetails, Public, PUBLIC_METADATA, RequireScopes } from '#operations';

// Input, and the members of responses.
export {
  BodyLimits,
  BooleanProperty,
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  NoQuery,
  OpaqueParameter,
  PathId,
  TextProperty,
} from '#input';
export { int64Of, shared } from '#json';

// Repositories of entities. Lists in pages. Addresses of what was created.
export {
  ArraySchema,
  Created,
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  defineConstraintErrors,
  Keyset,
  LimitParameter,
  MAX_PAGE_SIZE,
  type Page,
  Paged,
  SharedRepository,
} from '#resources';

// Safe retries.
export { Idempotency, IdempotencyKey, Idempotent, type Kept } from '#resources';

// Errors. Exceptions of Nest have the codes of the catalogue by their status.
export { ApiError, defineError, FailsWith, type Fault, INVALID_CURSOR, PRECONDITION_FAILED } from '#errors';

// The OpenAPI document.
export { Tag } from '#operations';

// Who calls, and other ways than API keys to say so. API keys, for modules that manage them.
export {
  ApiKeyRequestError,
  ApiKeysService,
  Authenticator,
  type Caller,
  clientNameOf,
  CurrentCaller,
  requireScopes,
} from '#access';

// Services and repositories.
export { Config } from '#settings';
export { Clock, StartupError } from '#runtime';
export { Database, type Migration, type Transaction } from '#postgres';
export { Metrics, Readiness } from '#ops';

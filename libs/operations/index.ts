export { isScope, Public, PUBLIC_METADATA, RequireScopes } from './src/access.decorators.js';
export { Deprecated, DeprecationInterceptor, Stability } from './src/deprecation.decorators.js';
export { type Deprecation, DEPRECATION_SETTINGS } from './src/deprecation.js';
export { operationRemoved, removalMessage } from './src/deprecation.js';
export { OPERATION_IDS } from './src/operation-ids.internals.js';
export { IDEMPOTENT_METADATA, type Operation, OperationRegistry } from './src/operation-registry.js';
export { refuseUnprotectedHandlers } from './src/other-transports.js';
export { ROUTES } from './src/routes.internals.js';

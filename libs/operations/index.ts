export { isScope, OpenTo, Public, PUBLIC_METADATA, RequireScopes } from './src/access.decorators.js';
export { Deprecated, DeprecationInterceptor, Stability } from './src/deprecation.decorators.js';
export { type Deprecation, DEPRECATION_SETTINGS } from './src/deprecation.js';
export { operationRemoved, removalMessage } from './src/deprecation.js';
export { FaultDetails } from './src/fault-details.js';
export { IDEMPOTENCY_KEY_HEADER, KEY_PATTERN, MAX_FIELD_LENGTH } from './src/idempotency-key-field.js';
export { IDEMPOTENT_METADATA, type Operation, OperationRegistry } from './src/operation-registry.js';
export { TO_SENT_METADATA, type ToSent } from './src/operation-registry.js';
export { checkTransports, refuseUnprotectedHandlers } from './src/other-transports.js';

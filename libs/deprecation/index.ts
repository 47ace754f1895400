export { Deprecated, Stability, type StabilityLevel } from './src/deprecation.decorators.js';
export { STABILITY_METADATA, stabilityField } from './src/deprecation.interceptor.js';
export { DeprecationModule } from './src/deprecation.module.js';
export { type Deprecation, DEPRECATION_METADATA, Deprecations, removalMessage } from './src/deprecations.js';

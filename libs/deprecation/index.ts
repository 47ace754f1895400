export { Deprecated, Stability, type StabilityLevel } from './src/deprecation.decorators.js';
export { type Deprecation, DEPRECATION_METADATA, Deprecations } from './src/deprecations.js';
export { removalMessage, STABILITY_METADATA, stabilityField } from './src/deprecations.js';

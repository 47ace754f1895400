export {
  Deprecated,
  stabilityField,
  Stability,
  STABILITY_METADATA,
  type StabilityLevel,
} from './src/deprecation.decorators.js';
export { type Deprecation, DEPRECATION_METADATA, Deprecations, removalMessage } from './src/deprecations.js';

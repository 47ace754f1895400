export { BodyLimits } from './src/body-limits.decorator.js';
export { BODY_SETTINGS, BodyGuard } from './src/body.guard.js';
export { type Handler, queryClassOf } from './src/handler-parameters.js';
export { InputPipe } from './src/input.pipe.js';
export { NoQuery } from './src/no-query.decorator.js';
export { PathId } from './src/path-id.decorator.js';
export {
  BooleanProperty,
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  OpaqueParameter,
  TextProperty,
} from './src/property.decorators.js';

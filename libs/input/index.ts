export { BODY_SETTINGS, BodyGuard, BodyLimits } from './src/body.guard.js';
export { type Handler, queryClassOf } from './src/handler-parameters.js';
export { InputPipe, NoQuery } from './src/input.pipe.js';
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

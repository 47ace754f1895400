export { BODY_SETTINGS, BodyGuard, BodyLimits } from './src/body.guard.js';
export { CLASS_TRANSFORMERS, type SubType, subTypesOf } from './src/class-transformers.internals.js';
export { DECLARED_TYPES } from './src/declared-types.internals.js';
export { GLOBAL_PIPES } from './src/global-pipes.internals.js';
export { type Handler, HANDLER_PARAMETERS, queryClassOf } from './src/handler-parameters.internals.js';
export { InputPipe, NoQuery } from './src/input.pipe.js';
export {
  BooleanProperty,
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  OpaqueParameter,
  PathId,
  TextProperty,
} from './src/property.decorators.js';
export { VALIDATION_PIPES } from './src/validation-pipes.internals.js';

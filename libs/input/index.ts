export { BODY_SETTINGS, BodyGuard, BodyLimits } from './src/body.guard.js';
export { type SubType, subTypesOf } from './src/class-transformers.internals.js';
export { checkDeclaredMembers, declaredMembers } from './src/declared-members.js';
export { type Handler, queryClassOf } from './src/handler-parameters.internals.js';
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

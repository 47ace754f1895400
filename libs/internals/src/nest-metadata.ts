// Nest's internal modules need it, and leave it to `@nestjs/common` to load it.
import 'reflect-metadata';
/*
 * Undocumented constants of Nest: the keys of the metadata that its decorators store, and the kinds of parameters. A start fails
 * if one is missing.
 */
export {
  HTTP_CODE_METADATA,
  INTERCEPTORS_METADATA,
  METHOD_METADATA,
  MODULE_METADATA,
  PARAMTYPES_METADATA,
  PATH_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
  SSE_METADATA,
  VERSION_METADATA,
} from '@nestjs/common/constants.js';
export { RouteParamtypes } from '@nestjs/common/internal';

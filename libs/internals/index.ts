export { hasTransformersBeside } from './src/class-transformer.js';
export { DirectInterceptor } from './src/direct-interceptor.js';
export { createMessageClasses } from './src/express-prototypes.js';
export { refuseHiddenRoutes, routedMethods, useFirst } from './src/express-routes.js';
export {
  HTTP_CODE_METADATA,
  INTERCEPTORS_METADATA,
  METHOD_METADATA,
  MODULE_METADATA,
  PARAMTYPES_METADATA,
  PATH_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
  RouteParamtypes,
  SSE_METADATA,
  VERSION_METADATA,
} from './src/nest-metadata.js';
export { lateOptionsOf, logOtherInternals } from './src/other-internals.js';
export {
  collectParameters,
  destroySocket,
  differenceOfPg,
  hangUp,
  prepareValue,
  transactionStatusOf,
  unansweredStatement,
} from './src/pg.js';
export { type PostgresDriver, PostgresQueryRunner } from './src/typeorm-driver.js';

export { createMessageClasses } from './src/express-prototypes.js';
export { refuseHiddenRoutes, routedMethods, useFirst } from './src/express-routes.js';
export { takeConnections } from './src/http-connections.js';
export { logOtherInternals } from './src/other-internals.js';
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

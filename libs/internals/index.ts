export { hasTransformersBeside, sentNameOf } from './src/class-transformer.js';
// eslint-disable-next-line no-restricted-syntax -- the file lists what others may use
export * from './src/nest-metadata.js';
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

import { logOtherInternals } from '../../internals/other-internals.js';
import { differenceOfPg } from './pg-internals.js';
import { executePreparedQuery } from './prepared-query.js';
import { type Execute, executeQuery } from './statement.js';

/**
 * Chooses how statements are executed: by our own query class if the fast path `prepared-queries` is on, else by pg's. If
 * pg's internals differ from the known ones, logs one line and chooses pg's class.
 *
 * @param difference for tests
 */
export function chooseExecute(isFastPathOn: boolean, difference = differenceOfPg): Execute {
  if (!isFastPathOn) return executeQuery;
  const found = difference();
  if (found === undefined) return executePreparedQuery;
  logOtherInternals('prepared-queries', found);
  return executeQuery;
}

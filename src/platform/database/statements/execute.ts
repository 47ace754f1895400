import { logOtherInternals } from '../../fast-paths/other-internals.js';
import { differenceOfPg } from './pg-internals.js';
import { executePreparedQuery } from './prepared-query.js';
import { type Execute, executeQuery } from './statement.js';

/**
 * How statements are executed: by our own query class if the fast path `prepared-queries` is on, else by pg's. With another
 * pg than the known one it logs one line and chooses pg's.
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

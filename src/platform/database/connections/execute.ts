import type { FastPath } from '../../../config.js';
import { logOtherInternals } from '../../fast-paths/other-internals.js';
import { differenceOfPg } from './pg-internals.js';
import { executePreparedQuery } from './prepared-query.js';
import { type Execute, executeQuery } from './statement.js';

/**
 * How statements are executed: with the fast path `prepared-queries` by our own query class, else by pg's. With another pg
 * than the known one it logs one line and chooses pg's.
 *
 * @param difference for tests
 */
export function chooseExecute(fastPaths: readonly FastPath[], difference = differenceOfPg): Execute {
  if (!fastPaths.includes('prepared-queries')) return executeQuery;
  const found = difference();
  if (found === undefined) return executePreparedQuery;
  logOtherInternals('prepared-queries', found);
  return executeQuery;
}

import { type FastReach, isOn } from '#runtime';
import { executePreparedQuery, PREPARED_QUERIES } from './prepared-query.internals.js';
import { type Execute, executeQuery } from './statements.js';

/**
 * How statements are executed: by our own query class if the fast path `prepared-queries` is on, else by pg's.
 *
 * @param reach for tests
 */
export function executeOf(
  { databaseDirectUrl, fastPaths }: { readonly databaseDirectUrl: string | undefined; readonly fastPaths: boolean },
  reach: FastReach = PREPARED_QUERIES,
): Execute {
  if (databaseDirectUrl !== undefined) return executeUnnamed;
  return isOn(reach, fastPaths) ? executePreparedQuery : executeQuery;
}

/** Behind a pooler in transaction mode, each statement may run in another session, so none is prepared. */
const executeUnnamed: Execute = (client, { text }, values) => executeQuery(client, { name: '', text }, values);

import { PGLITE } from '#embedded-postgres';
import { TYPEORM_ENTITIES } from '#entities';
import { EXPRESS_ROUTER, JOINED_WRITES, MESSAGE_PROTOTYPES, NODE_HTTP } from '#http';
import { PG_CONNECTION, PREPARED_QUERIES, TYPEORM_QUERY_RUNNERS } from '#postgres';
import { CLASS_TRANSFORMERS, DECLARED_TYPES, GLOBAL_PIPES, HANDLER_PARAMETERS, VALIDATION_PIPES } from '#input';
import { BASE_FILTER, CLASS_RULES, DOCUMENTED_MEMBERS, STREAMS_OF_VALUES } from '#json';
import { GRAPHQL, MICROSERVICES, OPERATION_IDS, ROUTES, WEBSOCKETS } from '#operations';
import { HANDLER_CALLS } from '#nest-speed';
import { differenceOf, FastPaths, misfit, type Reach } from '#runtime';
import { MODULE_IMPORTS } from './module-imports.internals.js';

/** Everything undocumented that the platform touches: what each `*.internals.ts` exports. */
export const REACHES: readonly Reach[] = [
  NODE_HTTP,
  JOINED_WRITES,
  EXPRESS_ROUTER,
  MESSAGE_PROTOTYPES,
  BASE_FILTER,
  PG_CONNECTION,
  PREPARED_QUERIES,
  TYPEORM_QUERY_RUNNERS,
  TYPEORM_ENTITIES,
  PGLITE,
  ...[CLASS_RULES, DOCUMENTED_MEMBERS, STREAMS_OF_VALUES],
  ...[CLASS_TRANSFORMERS, DECLARED_TYPES, GLOBAL_PIPES, HANDLER_PARAMETERS, VALIDATION_PIPES],
  ...[GRAPHQL, MICROSERVICES, OPERATION_IDS, ROUTES, WEBSOCKETS],
  MODULE_IMPORTS,
  HANDLER_CALLS,
];

const SWITCHED_OFF = 'FAST_PATHS is off';

/**
 * Checks at start that what the platform touches of its dependencies is what it was written for.
 *
 * @param isWanted FAST_PATHS
 * @throws StartupError that names each difference on which correctness or security depends
 */
export async function checkReaches(isWanted: boolean, reaches = REACHES): Promise<FastPaths> {
  // Batching touches nothing of a dependency.
  const paths = new FastPaths([['batching', isWanted ? undefined : SWITCHED_OFF]]);
  const differences: string[] = [];
  for (const reach of reaches) {
    const difference = await differenceOf(reach);
    if (reach.fastPath === undefined) differences.push(...[difference].filter((each) => each !== undefined));
    else paths.set(reach.fastPath, isWanted ? difference : SWITCHED_OFF);
  }
  if (differences.length > 0) throw misfit(differences);
  return paths;
}

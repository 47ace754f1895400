import { HANDLER_CALLS } from '#nest-speed';
import { differenceOf, FastPaths, type Reach, StartupError } from '#runtime';

/** Everything undocumented that the platform touches: what each `*.internals.ts` exports. */
export const REACHES: readonly Reach[] = [HANDLER_CALLS];

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
  if (differences.length === 0) return paths;
  throw new StartupError(
    `This service does not fit the installed version of a dependency: ${differences.join('; ')}. Install the version in package-lock.json of its release.`,
  );
}

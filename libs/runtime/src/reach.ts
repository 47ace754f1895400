import { StartupError } from './startup-error.js';

/**
 * What a library of ours touches of a dependency that the dependency does not document. Each file `*.internals.ts` exports one,
 * for all that it touches; `libs/service/src/reaches.ts` lists them, and the start checks all.
 */
export interface Reach {
  /** The name of the package; `node` for Node.js. */
  readonly dependency: string;
  /** The members, modules or behaviour. */
  readonly touches: string;
  /** What it is for. */
  readonly why: string;
  /** The fast path that stays off if `check` finds a difference; undefined if correctness or security depends on it: the start fails. */
  readonly fastPath?: string;
  /** Says how the dependency differs from the known one; undefined if it does not. An error is a difference, too. */
  check(): string | undefined | Promise<string | undefined>;
}

/** The reach of a fast path. Its check needs no wait. */
export interface FastReach extends Reach {
  readonly fastPath: string;
  check(): string | undefined;
}

/** Whether a fast path is on: FAST_PATHS wants it, and what it touches is as known. */
export function isOn(reach: FastReach, isWanted: boolean): boolean {
  return isWanted && differenceOf(reach) === undefined;
}

/** How a dependency differs from the known one, with the name of the dependency; undefined if it does not. */
export function differenceOf(reach: FastReach): string | undefined;
export function differenceOf(reach: Reach): string | undefined | Promise<string | undefined>;
export function differenceOf(reach: Reach): string | undefined | Promise<string | undefined> {
  const told = (difference: string | undefined): string | undefined =>
    difference && `${reach.dependency}: ${difference}`;
  const failed = (error: unknown): string => `${reach.dependency}: a trial fails (${String(error)})`;
  try {
    const found = reach.check();
    return found instanceof Promise ? found.then(told, failed) : told(found);
  } catch (error) {
    return failed(error);
  }
}

/** The error of a start for which dependencies differ, each as `differenceOf` says it. */
export function misfit(differences: readonly string[]): StartupError {
  return new StartupError(
    `This service does not fit the installed version of a dependency: ${differences.join('; ')}. ` +
      'Install the version in package-lock.json of its release.',
  );
}

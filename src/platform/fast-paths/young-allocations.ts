import { cachedDataVersionTag, setFlagsFromString } from 'node:v8';
import { logOtherInternals } from './other-internals.js';

/**
 * Lets V8 allocate every new object in its young generation, in this process until it ends.
 *
 * V8 allocates objects of a place in the code among the old ones ("pretenuring") once it has seen most of them survive its
 * small collections. The rows of a page do, because they wait for the end of their statement. From then on all rows are
 * garbage that only a large collection removes, and so is all they refer to.
 *
 * If this version of V8 has no such option, logs one line; V8 prints another one on standard error.
 *
 * @param option for tests
 */
export function allocateYoung(option = 'allocation-site-pretenuring'): void {
  setFlagsFromString(`--${option}`);
  const before = cachedDataVersionTag();
  setFlagsFromString(`--no-${option}`);
  // The tag is made of the version and the options of V8, so an unknown option leaves it the same.
  if (cachedDataVersionTag() === before) logOtherInternals('young-allocations', `V8 has no option --${option}`);
}

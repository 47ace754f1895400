import { cachedDataVersionTag, setFlagsFromString } from 'node:v8';
import { logOtherInternals } from './other-internals.js';

/**
 * Turns V8's allocation-site pretenuring off, in this process until it ends, so that rows are allocated in the young
 * generation.
 *
 * V8 allocates the objects of an allocation site in the old generation ("pretenuring") once most of them have survived its
 * minor collections. The rows of a page do, because they wait for the end of their statement. From then on only a major
 * collection frees rows, and everything that they refer to.
 *
 * If this version of V8 has no such option, logs one line; V8 prints its own lines on standard error.
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

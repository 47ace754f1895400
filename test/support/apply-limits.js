/*
 * Changes the limits of a process of the service that a test starts: `--import` of this file reads TEST_LIMITS, which
 * `limits` in `limits.ts` sets.
 */
import { SETTINGS } from '../../dist/src/settings.js';

for (const [member, value] of Object.entries(JSON.parse(process.env.TEST_LIMITS ?? '{}'))) {
  SETTINGS[member].read = () => value;
}

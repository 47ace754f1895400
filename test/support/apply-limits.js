/*
 * Changes the limits of a process of the service that a test starts: `--import` of this file reads TEST_LIMITS, which
 * `limits` in `limits.ts` sets.
 */
import { LIMITS } from '../../dist/libs/settings/src/limits.js';

Object.assign(LIMITS, JSON.parse(process.env.TEST_LIMITS ?? '{}'));

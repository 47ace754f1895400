/** The environment variable FAST_PATHS of the test run; every service that a test starts gets it. */
export const FAST_PATHS_SETTING = { FAST_PATHS: process.env['FAST_PATHS'] ?? '' };

/** The setting FAST_PATHS of the environment of the test run: every service that a test starts runs with it. */
export const FAST_PATHS_SETTING = { FAST_PATHS: process.env['FAST_PATHS'] ?? '' };

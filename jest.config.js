const shared = {
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testEnvironment: 'node',
};

/** Tests on one engine, which its global set-up makes ready. */
function onEngine(engine, displayName, { roots = ['<rootDir>/test'], testRegex, testPathIgnorePatterns = [] }) {
  return {
    ...shared,
    displayName,
    roots,
    testRegex,
    testPathIgnorePatterns,
    globals: { petstoreTestEngine: engine },
    globalSetup: `<rootDir>/test/support/global-setup-${engine}.js`,
    globalTeardown: '<rootDir>/test/support/global-teardown.js',
  };
}

const END_TO_END = '\\.e2e-spec\\.ts$';
/** They need roles, a second process on the database, or one without it, which the embedded engine cannot have. */
const POSTGRESQL_ONLY = '/(database-rights|keys-commands|unavailable)\\.e2e-spec\\.ts$';
const EMBEDDED_ONLY = '/test/platform/embedded\\.e2e-spec\\.ts$';
/** Each starts dozens of processes, or builds the service, so `npm test` leaves them to `npm run test:postgresql`. */
const MANY_PROCESSES =
  '/test/(operation/(cli|refused-start|service-commands|terminal)|api-keys/keys-commands|ordinary-nest/generated-resource)\\.e2e-spec\\.ts$';
/**
 * What `npm test` runs on the embedded engine, too: the API and the engine. The rest runs there with
 * `npm run test:embedded`: processes, which take two seconds of CPU time each to open the engine, and HTTP that no database sees.
 */
const HTTP_ONLY = 'connections|cors|exceptions|http-errors|routes|security';
const EMBEDDED_BY_DEFAULT = `/test/(api/(?!(${HTTP_ONLY})\\.).*|platform/embedded)${END_TO_END}`;

export default {
  maxWorkers: 2,
  testTimeout: 30_000,
  projects: [
    { ...shared, displayName: 'unit', roots: ['<rootDir>/src', '<rootDir>/test'], testRegex: '\\.spec\\.ts$' },
    onEngine('postgresql', 'postgresql', {
      testRegex: END_TO_END,
      testPathIgnorePatterns: [EMBEDDED_ONLY, MANY_PROCESSES],
    }),
    onEngine('postgresql', 'postgresql-rest', { testRegex: MANY_PROCESSES }),
    onEngine('embedded', 'embedded', { testRegex: EMBEDDED_BY_DEFAULT, testPathIgnorePatterns: [POSTGRESQL_ONLY] }),
    onEngine('embedded', 'embedded-rest', {
      testRegex: END_TO_END,
      testPathIgnorePatterns: [POSTGRESQL_ONLY, EMBEDDED_BY_DEFAULT],
    }),
    onEngine('postgresql', 'faults', { roots: ['<rootDir>/test/faults'], testRegex: '\\.fault-spec\\.ts$' }),
    onEngine('postgresql', 'openapi-tools', { testRegex: '\\.tools-spec\\.ts$' }),
    { ...shared, displayName: 'browser', roots: ['<rootDir>/test/browser'], testRegex: '\\.browser-spec\\.ts$' },
    onEngine('postgresql', 'client', { roots: ['<rootDir>/clients'], testRegex: '\\.spec\\.ts$' }),
    onEngine('postgresql', 'client-system', { roots: ['<rootDir>/clients'], testRegex: '\\.system-spec\\.ts$' }),
  ],
};

const shared = {
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testEnvironment: 'node',
};

/** The end-to-end tests on one engine, which its global set-up makes ready. */
function endToEnd(engine, testPathIgnorePatterns = []) {
  return {
    ...shared,
    displayName: engine,
    roots: ['<rootDir>/test'],
    testRegex: '\\.e2e-spec\\.ts$',
    testPathIgnorePatterns,
    globals: { petstoreTestEngine: engine },
    globalSetup: `<rootDir>/test/support/global-setup-${engine}.js`,
    globalTeardown: '<rootDir>/test/support/global-teardown.js',
  };
}

export default {
  maxWorkers: 2,
  testTimeout: 30_000,
  projects: [
    { ...shared, displayName: 'unit', roots: ['<rootDir>/src', '<rootDir>/test'], testRegex: '\\.spec\\.ts$' },
    endToEnd('postgresql', ['/embedded\\.e2e-spec\\.ts$']),
    // They need a second process on the database, or one without it, which the embedded engine cannot have.
    endToEnd('embedded', ['/(keys-(commands|flood)|unavailable)\\.e2e-spec\\.ts$']),
    {
      ...shared,
      displayName: 'faults',
      roots: ['<rootDir>/test/faults'],
      testRegex: '\\.fault-spec\\.ts$',
    },
    {
      ...shared,
      displayName: 'browser',
      roots: ['<rootDir>/test/browser'],
      testRegex: '\\.browser-spec\\.ts$',
    },
    // They need PostgreSQL for the service that they call.
    { ...endToEnd('postgresql'), displayName: 'client', roots: ['<rootDir>/clients'], testRegex: '\\.spec\\.ts$' },
    {
      ...endToEnd('postgresql'),
      displayName: 'client-system',
      roots: ['<rootDir>/clients'],
      testRegex: '\\.system-spec\\.ts$',
    },
  ],
};

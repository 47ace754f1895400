const shared = {
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testEnvironment: 'node',
  // `#name` of package.json means the sources of a library.
  testEnvironmentOptions: { customExportConditions: ['typescript', 'node', 'node-addons'] },
};

/** The tests of an optional part stand beside it, in `libs/<part>/test`. */
const ROOTS = ['<rootDir>/test', '<rootDir>/libs'];

/** Tests on one engine, which its global set-up makes ready. */
function onEngine(engine, displayName, { roots = ROOTS, testRegex, testPathIgnorePatterns = [] }) {
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

/** The end-to-end tests whose path below a folder `test/` begins as the pattern says. */
function endToEnd(pattern = '') {
  return `/test/(${pattern}).*\\.e2e-spec\\.ts$`;
}

const END_TO_END = endToEnd();
/**
 * They need roles, a second process on the database, or one without it, which the embedded engine cannot have, or are the same on
 * any engine and long.
 */
const NOT_EMBEDDED = endToEnd(
  'platform/(database-rights|move|plain-sql|statements-undone)|api-keys/keys-commands|api/unavailable|operation/start-settings',
);
/** HTTP, input, documents, log and metrics, which are the same whatever the database is: the gate runs each on one. */
const ANY_ENGINE = endToEnd(
  'api/(connections|exceptions|openapi|path-prefix|silent-connections)|api-keys/secret-scanning' +
    '|operation/(metrics|observability-aborted|shutdown)|ordinary-nest/' +
    '|platform/(alive|input|operation-names|other-transports|own-answers|products|refused-starts)' +
    '|platform/(request-body|request-in-log)|repository/|tracing',
);
const EMBEDDED_ONLY = endToEnd('platform/embedded');
/**
 * Each starts many processes, builds or lints the service, waits for locks, or sends thousands of generated requests.
 * `npm test` leaves them to the commands that run the projects `…-rest`.
 */
const LONG = endToEnd(
  'api/(fuzz|silent-connections)|api-keys/keys-commands|key-usage' +
    '|operation/(cli|metrics|observability|service-commands|shutdown|start|terminal)' +
    '|ordinary-nest/generated' +
    '|platform/(alive|constraints|database-pool|database-settings|embedded|migration|move|plain-sql)' +
    '|platform/(request-body|shared-statements|sharing|upgrading)' +
    '|repository/path|tracing',
);
const LONG_UNIT = '/test/repository/(import-rules|package)\\.spec\\.ts$';
/** What modules of a team may do. `npm test` leaves it to the project `modules`, which the gate runs. */
const MODULES = endToEnd('platform/|ordinary-nest/');
/** What `npm test` runs on the embedded engine, too. Each start of it costs two seconds of CPU time. */
const CONTRACT = endToEnd('api/(contract|pets)');

export default {
  // One more than the two processors that everybody has: a third of the time a test waits for a timer or a process.
  maxWorkers: 3,
  // Ends a test or hook that hangs. Some start the service several times, 1 s each, or 5 s on a slow machine.
  testTimeout: 60_000,
  // Jest's 0.5 s is too short for a process with an embedded engine on a busy machine: it would be called a leak.
  workerGracefulExitTimeout: 10_000,
  projects: [
    {
      ...shared,
      displayName: 'unit',
      roots: ['<rootDir>/src', '<rootDir>/libs', '<rootDir>/test'],
      testRegex: '\\.spec\\.ts$',
      testPathIgnorePatterns: [LONG_UNIT],
    },
    { ...shared, displayName: 'unit-rest', roots: ['<rootDir>/test'], testRegex: LONG_UNIT },
    onEngine('postgresql', 'any-engine', { testRegex: ANY_ENGINE, testPathIgnorePatterns: [LONG, MODULES] }),
    onEngine('postgresql', 'postgresql', {
      testRegex: END_TO_END,
      testPathIgnorePatterns: [ANY_ENGINE, LONG, MODULES],
    }),
    onEngine('postgresql', 'modules', { testRegex: MODULES, testPathIgnorePatterns: [EMBEDDED_ONLY, LONG] }),
    onEngine('postgresql', 'postgresql-rest', { testRegex: LONG, testPathIgnorePatterns: [EMBEDDED_ONLY] }),
    onEngine('embedded', 'embedded', {
      testRegex: CONTRACT,
    }),
    onEngine('embedded', 'embedded-rest', {
      testRegex: END_TO_END,
      testPathIgnorePatterns: [CONTRACT, NOT_EMBEDDED, ANY_ENGINE],
    }),
    onEngine('postgresql', 'operation', {
      testRegex: '\\.operation-spec\\.ts$',
    }),
    { ...shared, displayName: 'citus', roots: ['<rootDir>/test'], testRegex: '\\.citus-spec\\.ts$' },
    onEngine('postgresql', 'faults', { testRegex: '\\.fault-spec\\.ts$' }),
    onEngine('postgresql', 'ship', { roots: ['<rootDir>/test/ship'], testRegex: '\\.ship-spec\\.ts$' }),
    { ...shared, displayName: 'browser', roots: ['<rootDir>/libs'], testRegex: '\\.browser-spec\\.ts$' },
    onEngine('postgresql', 'client', { roots: ['<rootDir>/clients'], testRegex: '\\.spec\\.ts$' }),
    onEngine('postgresql', 'client-system', { roots: ['<rootDir>/clients'], testRegex: '\\.system-spec\\.ts$' }),
  ],
};

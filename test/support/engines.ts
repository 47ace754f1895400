/** The database engines of the end-to-end tests. */
export type Engine = 'postgresql' | 'embedded';

declare global {
  /** Set by jest.config.js for each project. */
  var petstoreTestEngine: Engine;
  /** global-teardown.js runs these tasks, last first. */
  var petstoreTestTearDown: (() => Promise<void>)[] | undefined;
}

/** Environment variables with which the global set-up passes values to Jest's worker processes. */
export const HANDED_OVER = {
  /** URI of a PostgreSQL server where the tests may create databases. */
  serverUrl: 'PETSTORE_TEST_SERVER_URL',
  /** Name of a migrated database on that server, to clone. */
  templateDatabase: 'PETSTORE_TEST_TEMPLATE_DATABASE',
  /** Migrated DATA_DIR of the embedded engine, to copy. */
  templateDirectory: 'PETSTORE_TEST_TEMPLATE_DIRECTORY',
  /** The same without a schema. */
  emptyTemplateDirectory: 'PETSTORE_TEST_EMPTY_TEMPLATE_DIRECTORY',
} as const;

/** Registers a task, in a global set-up, that runs after the tests, even if they fail. */
export function atTearDown(task: () => Promise<void>): void {
  (globalThis.petstoreTestTearDown ??= []).push(task);
}

/** A value from the global set-up. */
export function handedOver(name: keyof typeof HANDED_OVER): string {
  const value = process.env[HANDED_OVER[name]];
  if (value === undefined) throw new Error(`${HANDED_OVER[name]} is not set. Run the tests with npm test.`);
  return value;
}

/** The engines that the end-to-end tests run on, each of them a project of jest. */
export type Engine = 'postgresql' | 'embedded';

declare global {
  /** Set by jest.config.js. */
  var petstoreTestEngine: Engine;
  /** What global-teardown.js runs, last first. */
  var petstoreTestTearDown: (() => Promise<void>)[] | undefined;
}

/** What the global set-up hands to the tests, which run in processes of their own. */
export const HANDED_OVER = {
  /** URI of a server where this run may create databases. */
  serverUrl: 'PETSTORE_TEST_SERVER_URL',
  /** Name of a migrated database there, to clone. */
  templateDatabase: 'PETSTORE_TEST_TEMPLATE_DATABASE',
  /** Migrated DATA_DIR of the embedded engine, to copy. */
  templateDirectory: 'PETSTORE_TEST_TEMPLATE_DIRECTORY',
} as const;

/** To be called by a global set-up: runs a task when the tests are over, also when they fail. */
export function atTearDown(task: () => Promise<void>): void {
  (globalThis.petstoreTestTearDown ??= []).push(task);
}

/** A value that the global set-up has handed over. */
export function handedOver(name: keyof typeof HANDED_OVER): string {
  const value = process.env[HANDED_OVER[name]];
  if (value === undefined) throw new Error(`${HANDED_OVER[name]} is not set. Run the tests with npm test.`);
  return value;
}

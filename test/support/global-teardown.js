/** Runs the tear-down tasks that the global set-ups registered, last first. */
export default async function tearDown() {
  const tasks = globalThis.petstoreTestTearDown ?? [];
  while (tasks.length > 0) await tasks.pop()();
}

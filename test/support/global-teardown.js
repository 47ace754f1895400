/** Undoes what the global set-ups of this run have done, last first. */
export default async function tearDown() {
  const tasks = globalThis.petstoreTestTearDown ?? [];
  while (tasks.length > 0) await tasks.pop()();
}

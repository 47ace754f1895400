import { setTimeout as sleep } from 'node:timers/promises';

/** Longest wait in ms: many times what an idle machine needs. */
const PATIENCE_MS = 40_000;

/** Repeats a call until it returns neither false nor undefined, and returns that value. Fails after PATIENCE_MS. */
export async function until<Value>(ask: () => Value | Promise<Value>): Promise<Exclude<Value, false | undefined>> {
  for (const deadline = performance.now() + PATIENCE_MS; ; await sleep(20)) {
    const value = await ask();
    if (value !== false && value !== undefined) return value as Exclude<Value, false | undefined>;
    if (performance.now() > deadline) throw new Error(`Never seen: ${ask.toString()}`);
  }
}

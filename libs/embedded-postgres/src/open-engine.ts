import type { EmbeddedEngine } from './embedded-engine.js';

/** See `EmbeddedEngine.open`. Loads the engine: a command that the service runs does without. */
export async function openEngine(dataDir: string): Promise<EmbeddedEngine> {
  const { EmbeddedEngine: Engine } = await import('./embedded-engine.js');
  return Engine.open(dataDir);
}

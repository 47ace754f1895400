import type { TestApp } from './app.js';
import type { HttpAnswer } from './http-client.js';

/** Calls listPets with a key. */
export function call(app: TestApp, apiKey: string): Promise<HttpAnswer> {
  return app.client.get('/v1/pets?limit=1', { apiKey });
}

/** Calls listPets with a key one after another. Returns how many got 200; all others must be 429. */
export async function countAllowed(app: TestApp, apiKey: string, calls: number): Promise<number> {
  let allowed = 0;
  for (let count = 0; count < calls; count++) {
    const { status } = await call(app, apiKey);
    expect([200, 429]).toContain(status);
    if (status === 200) allowed++;
  }
  return allowed;
}

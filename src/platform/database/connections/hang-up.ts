import type pg from 'pg';

/** Ends a connection without waiting for whoever is at its other end. */
export function hangUp(client: pg.Client | undefined): void {
  const { stream } =
    (client as unknown as { connection: { stream: { destroy(): void } } } | undefined)?.connection ?? {};
  client?.end().catch(() => undefined);
  // Behind the farewell that `end` has written.
  setImmediate(() => stream?.destroy());
}

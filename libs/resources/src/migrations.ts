/** The migrations of the tables of this library. */
export const IDEMPOTENCY_MIGRATIONS = new URL('./migrations/', import.meta.url);

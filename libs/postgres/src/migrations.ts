/** The migrations of the tables that `migrate` itself makes. */
export const HISTORY_MIGRATIONS = new URL('./migrations/', import.meta.url);

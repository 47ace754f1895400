/** The migrations of the tables of this library. */
export const API_KEY_MIGRATIONS = new URL('./migrations/', import.meta.url);

/** The migrations of API keys, and of their usage, which `keys list` shows. */
export const API_KEY_MIGRATIONS = new URL('./migrations/', import.meta.url);

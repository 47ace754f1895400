declare module 'pg/lib/utils.js' {
  /** The text, or the bytes, that PostgreSQL reads a value from; null for null and undefined. */
  export function prepareValue(value: unknown): string | Buffer | null;
}

/** The metadata of class-transformer's decorators. Only this path of the package exports it, without a type. */
declare module 'class-transformer/cjs/storage.js' {
  export { defaultMetadataStorage } from 'class-transformer/types/storage.js';
}

declare module 'pg/lib/utils.js' {
  /** The text, or the bytes, that PostgreSQL reads a value from; null for null and undefined. */
  export function prepareValue(value: unknown): string | Buffer | null;
}

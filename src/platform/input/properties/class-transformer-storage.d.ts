/** The metadata of class-transformer's decorators. The package exports it by this path alone, and declares its type elsewhere. */
declare module 'class-transformer/cjs/storage.js' {
  export { defaultMetadataStorage } from 'class-transformer/types/storage.js';
}

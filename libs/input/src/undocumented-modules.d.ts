/** The metadata of class-transformer's decorators. Only this path of the package exports it, without a type. */
declare module 'class-transformer/cjs/storage.js' {
  export { defaultMetadataStorage } from 'class-transformer/types/storage.js';
}

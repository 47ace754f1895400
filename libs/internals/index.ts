export { hasTransformersBeside, sentNameOf } from './src/class-transformer.js';
// eslint-disable-next-line no-restricted-syntax -- the file lists what others may use
export * from './src/nest-metadata.js';
export { lateOptionsOf, logOtherInternals } from './src/other-internals.js';

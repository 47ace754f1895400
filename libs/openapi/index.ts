export type { DeprecatedOperation } from './src/openapi-document.js';
export { DOCUMENT_SETTINGS, OpenApiDocument, OpenApiModule, Tag } from './src/openapi-document.js';

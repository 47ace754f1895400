export { type DeprecatedOperation, OpenApiDocument, OpenApiModule, Tag } from './src/openapi-document.js';
export { LOCATION_HEADER } from './src/response-headers.js';

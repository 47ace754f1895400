export { type DeprecatedOperation, OpenApiDocument, OpenApiModule } from './src/openapi-document.js';
export { ArraySchema, FailsWith, isArraySchema, Tag } from './src/openapi.decorators.js';
export { LOCATION_HEADER, NEXT_PAGE_HEADER } from './src/response-headers.js';

export { Created } from './src/created.decorator.js';
export { DEFAULT_PAGE_SIZE, type Filters, Keyset, MAX_PAGE_SIZE, type Page, type PageQuery } from './src/keyset.js';
export { ArraySchema, CursorParameter, LimitParameter, Paged } from './src/paging.decorators.js';
export { SharedRepository } from './src/shared.repository.js';

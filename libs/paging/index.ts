export { type Filters, Keyset, type Page, type PageQuery } from './src/keyset.js';
export { CursorParameter, DEFAULT_PAGE_SIZE, LimitParameter, MAX_PAGE_SIZE, Paged } from './src/paging.decorators.js';

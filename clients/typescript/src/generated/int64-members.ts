// Generated from openapi.json by `npm run generate`. Do not edit.

export const INT64_MEMBERS: ReadonlySet<string> = new Set(['categoryId', 'id']);

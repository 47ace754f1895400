/**
 * Every intended difference from stock Nest. The table "Differences from stock Nest" in docs/extending.md has a row with
 * the reason of each; a test compares the names.
 */
export const DIFFERENCES = [
  'header fields of every response',
  'entity tags',
  'media types',
  'error body',
  'query parameters',
  'undeclared members',
  'members of a response',
  'faults of input',
  'input that cannot be stored',
  'body in middleware',
  'types of bodies',
  'unknown routes',
  'addresses',
] as const;

export type Difference = (typeof DIFFERENCES)[number];

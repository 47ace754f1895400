/**
 * Every intended difference from stock Nest. The table "Differences from stock Nest" in docs/extending.md has a row with
 * the reason of each; a test compares the names.
 */
export const DIFFERENCES = [
  'header fields of every answer',
  'entity tags',
  'media type of JSON',
  'media type of text',
  'numbers and booleans',
  'bytes',
  'error body',
  'message of a 5xx',
  'unknown query parameters',
  'repeated query parameters',
  'undeclared members',
  'members of an answer',
  'faults of input',
  'body in middleware',
  'types of bodies',
  'no body',
  'route not found',
  'method not allowed',
  'enableVersioning',
  'setGlobalPrefix',
] as const;

export type Difference = (typeof DIFFERENCES)[number];

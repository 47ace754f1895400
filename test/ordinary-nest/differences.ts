/**
 * Every intended difference from stock Nest, with its reason. The table "Differences from stock Nest" in docs/extending.md says how
 * the two behave; a test compares the names.
 */
export const DIFFERENCES = [
  /** A request can be found in the log, and no shared cache keeps what a key has opened. */
  'header fields of every response',
  /** The tag is the same on every instance. */
  'entity tags',
  /** What a client has sent must not run as a page. */
  'media types',
  /** One shape for every error. Exceptions often quote an error from inside. */
  'error body',
  /** A `?page=2` that is ignored would return page one for ever. */
  'query parameters',
  /** Clients may be newer than the service. */
  'undeclared members',
  /** Nothing leaks that is not declared. */
  'members of a response',
  /** One sentence corrects one fault. */
  'faults of input',
  /** The client can correct its request. */
  'input that cannot be stored',
  /** No body is read before the API key is checked. */
  'body in middleware',
  /** The handler has declared one type, and two parsers must not read one body. */
  'types of bodies',
  /** The code tells a wrong address from a resource that is missing. */
  'unknown routes',
  /** Commands write the document without `setUp`. */
  'addresses',
] as const;

export type Difference = (typeof DIFFERENCES)[number];

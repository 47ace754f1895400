/** What a handler takes of its body. Made once for each handler, before any body is read for it. */
export interface BodyPlan {
  /** Whether a parameter of the handler takes the body, so that a request without one is refused. */
  readonly isTaken: boolean;
  /**
   * The members of a JSON body that the handler takes, all of them scalars. Nothing else of the body is kept in memory, and
   * arrays and objects are read as empty arrays. Undefined when the handler takes the whole body.
   */
  readonly members: readonly string[] | undefined;
  /** Whether a JSON number that a double does not hold with all its digits is NaN, which every rule refuses. */
  readonly needsAllDigits: boolean;
  /** The names of the handler's `@Body('name')` parameters; undefined without any. */
  readonly picked: readonly string[] | undefined;
  /** The media types that the handler declares; undefined for application/json without a content coding. */
  readonly types: BodyTypes | undefined;
  /** What is made of the bytes: the value that their media type stands for, their text, or nothing. */
  readonly form: 'value' | 'text' | 'bytes';
  /** Largest body in bytes; undefined for the limit of the server. */
  readonly maxBytes: number | undefined;
  /** Whether the bytes are kept as `request.rawBody`. */
  readonly keepsBytes: boolean;
}

/** Media types that a handler takes, in lower case. */
export interface BodyTypes {
  /** As they are declared. */
  readonly names: readonly string[];
  /** Matches them; `*` stands for a type or a subtype. */
  readonly pattern: RegExp;
}

/** As the data of a parameter decorator: it does not use `request.body`, so nothing is read for its sake. */
export const LEAVES_BODY = Symbol('leaves the body');

/** Types of which code of a module, such as multer, reads the bodies. */
const READ_BY_MODULES = /^multipart\//;

/** The types of names such as `text/csv`, and of patterns in which `*` stands for a type, a subtype or a part of it. */
export function bodyTypesOf(declared: readonly string[]): BodyTypes {
  const names = declared.map((name) => name.toLowerCase());
  const patterns = names
    .filter((name) => !READ_BY_MODULES.test(name))
    .map((name) => name.replace(/[.+^$(){}[\]|\\?]/g, '\\$&').replaceAll('*', '[^/]*'));
  return { names, pattern: new RegExp(`^(?:${patterns.join('|') || '[]'})$`) };
}

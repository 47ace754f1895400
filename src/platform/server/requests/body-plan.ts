/** Which parts of the body a handler takes, and in which form. Made once for each handler, before its body is read. */
export interface BodyPlan {
  /** Whether a parameter of the handler takes the body, so that a request without one is refused. */
  readonly isTaken: boolean;
  /**
   * The members of a JSON body that the handler takes, all of them scalars. Nothing else of the body is kept in memory, and
   * arrays and objects are read as empty arrays. Undefined when the handler takes the whole body.
   */
  readonly members: readonly string[] | undefined;
  /** Whether JSON numbers that would lose digits as a double are read as NaN, which every rule refuses. */
  readonly needsAllDigits: boolean;
  /** The names of the handler's `@Body('name')` parameters; undefined without any. */
  readonly picked: readonly string[] | undefined;
  /** The media types that the handler declares; undefined for application/json without a content coding. */
  readonly types: BodyTypes | undefined;
  /** The form for the handler: a value parsed by the media type, the text, or the bytes. */
  readonly form: 'value' | 'text' | 'bytes';
  /** Largest body in bytes; undefined for the limit of the server. */
  readonly maxBytes: number | undefined;
  /** Whether the bytes are kept as `request.rawBody`. */
  readonly keepsBytes: boolean;
}

/** Media types that a handler takes, in lower case. */
export interface BodyTypes {
  /** The names as the handler declares them, which may contain `*`. */
  readonly names: readonly string[];
  /** Matches the media types whose bodies the platform reads. */
  readonly pattern: RegExp;
}

/** Data of a parameter decorator that does not use `request.body`: the body is not read because of the parameter. */
export const LEAVES_BODY = Symbol('leaves the body');

/** Media types whose bodies code of a module reads, such as multer. */
const READ_BY_MODULES = /^multipart\//;

/** @param declared names such as `text/csv`, in which `*` may stand for a type, a subtype or a part of one */
export function bodyTypesOf(declared: readonly string[]): BodyTypes {
  const names = declared.map((name) => name.toLowerCase());
  const patterns = names
    .filter((name) => !READ_BY_MODULES.test(name))
    .map((name) => name.replace(/[.+^$(){}[\]|\\?]/g, '\\$&').replaceAll('*', '[^/]*'));
  return { names, pattern: new RegExp(`^(?:${patterns.join('|') || '[]'})$`) };
}

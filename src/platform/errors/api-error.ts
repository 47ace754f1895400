import { ErrorBody } from './error-body.js';
import type { ErrorDefinition } from './error-catalogue.js';

/** Header fields of a response, by name. */
export type HeaderFields = Readonly<Record<string, string>>;

/**
 * An error to answer a request with. Throw it anywhere while a request is handled; ErrorFilter sends it.
 *
 * The message is public: the client gets it unchanged. Put what only operators may read into `cause`.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly definition: ErrorDefinition,
    message = definition.message,
    /** Header fields of the answer, such as `WWW-Authenticate` or `Allow`. */
    readonly headers: HeaderFields = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** The body of the answer: code, message and status. */
  body(): ErrorBody {
    return new ErrorBody(this.definition, this.message);
  }
}

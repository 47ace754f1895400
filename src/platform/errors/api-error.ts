import { ErrorBody } from './error-body.js';
import type { ErrorDefinition } from './error-catalogue.js';

/** Response header fields, by name. */
export type HeaderFields = Readonly<Record<string, string>>;

/**
 * An answer that is an error: thrown anywhere on the way of a request, written by the one exception filter.
 * Its message is public: it reaches the client as it is. What only the operator may read goes into `cause`.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly definition: ErrorDefinition,
    message: string,
    /** Header fields that the answer needs beside the body, such as `WWW-Authenticate` or `Allow`. */
    readonly headers: HeaderFields = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  body(): ErrorBody {
    return new ErrorBody(this.definition, this.message);
  }
}

import type { ErrorDefinition } from './error-catalogue.js';

/** Response header fields, by lower-case name. */
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
    /** Header fields the answer needs beside the body, such as `WWW-Authenticate` or `Allow`. */
    readonly headers: HeaderFields = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** The Error body of the specification: exactly `code`, `message` and `status`. */
  body(): string {
    return errorBody(this.definition, this.message);
  }
}

/** The JSON text of the Error body, members in the order of the specification. */
export function errorBody(definition: ErrorDefinition, message: string): string {
  return JSON.stringify({ code: definition.code, message, status: definition.status });
}

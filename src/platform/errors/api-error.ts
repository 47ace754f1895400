import { ErrorBody } from './error-body.js';
import type { ErrorDefinition } from './error-catalogue.js';
import type { UnavailableCause } from './service-unavailable.js';

/** Header fields of a response, by name. */
export type HeaderFields = Readonly<Record<string, string>>;

/** What an ApiError may have besides its message and header fields. */
export interface ApiErrorOptions extends ErrorOptions {
  /** Sent as the member `details` of the body: any value that `writeJson` can write. Undefined for none. */
  readonly details?: unknown;
  /** Why the answer is 503, for operators alone. */
  readonly unavailableCause?: UnavailableCause | undefined;
}

/**
 * An error to answer a request with. Throw it anywhere while a request is handled; ErrorFilter sends it.
 *
 * Message and details are public: the client gets them unchanged. Put what only operators may read into `cause`.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly unavailableCause: UnavailableCause | undefined;
  private readonly details: unknown;

  constructor(
    readonly definition: ErrorDefinition,
    message = definition.message,
    /** Header fields of the answer, such as `WWW-Authenticate` or `Allow`. */
    readonly headers: HeaderFields = {},
    options?: ApiErrorOptions,
  ) {
    super(message, options);
    this.details = options?.details;
    this.unavailableCause = options?.unavailableCause;
  }

  /** The body of the answer: code, message and status, and the details if there are any. */
  body(): ErrorBody {
    return new ErrorBody(this.definition, this.message, this.details);
  }
}

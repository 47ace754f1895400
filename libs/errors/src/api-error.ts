import { BadRequestException, HttpException } from '@nestjs/common';
import type { ErrorDefinition } from './error-catalogue.js';
import type { UnavailableCause } from './service-unavailable.js';

/** Header fields of a response, by name. */
export type HeaderFields = Readonly<Record<string, string>>;

/** The schema `Error` of the specification: the body of every error answer. Members are sent in this order. */
export class ErrorBody {
  // Private to the language, because every other member is sent.
  readonly #error: ApiError;

  constructor(
    readonly code: string,
    readonly message: string,
    readonly status: number,
    /** Only errors of modules have details. */
    readonly details: unknown,
    error: ApiError,
  ) {
    this.#error = error;
  }

  /** The error itself: filters of modules answer with nothing but the body. */
  get error(): ApiError {
    return this.#error;
  }
}

/** Options of an ApiError. */
export interface ApiErrorOptions extends ErrorOptions {
  /** Sent as the member `details` of the body: any value that `writeJson` can write. Undefined for none. */
  readonly details?: unknown;
  /** The cause of a 503, for operators only. */
  readonly unavailableCause?: UnavailableCause | undefined;
}

/**
 * An error that answers a request. Throw it anywhere while a request is handled; ErrorFilter sends it. A filter of a module
 * that catches `HttpException` gets it, too.
 *
 * Message and details are public: the client gets them unchanged. Information for operators only belongs into `cause`.
 */
export class ApiError extends HttpException {
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
    super(message, definition.status, { cause: options?.cause });
    this.details = options?.details;
    this.unavailableCause = options?.unavailableCause;
  }

  /**
   * The body of the answer: code, message and status, and the details if there are any. An adapter that replies with it sends
   * the header fields, too.
   */
  override getResponse(): ErrorBody {
    return new ErrorBody(this.definition.code, this.message, this.definition.status, this.details, this);
  }
}

/**
 * The client closed the connection before its request was complete. No answer is sent, and no error is logged.
 */
export class RequestAbortedError extends BadRequestException {
  override readonly name = 'RequestAbortedError';
}

/**
 * A fault that the operator can fix and that stops the start or the command: a wrong setting, a database that does not
 * answer, a locked directory. The process prints the message without a stack trace and exits with code 1.
 *
 * The message must be one line, name the fault and the remedy, and contain no secret.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

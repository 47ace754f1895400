import { BadRequestException, HttpException } from '@nestjs/common';
import { type ErrorDefinition, UNAVAILABLE } from './error-catalogue.js';

/** Header fields of a response, by name. */
export type HeaderFields = Readonly<Record<string, string>>;

/**
 * Why a request gets 503, or 500 `took_too_long`: a label of the metric `http_unavailable_total` and a member of the
 * request's log line. `docs/operating.md` explains each one.
 */
export type UnavailableCause =
  | 'requests_in_flight'
  | 'bodies'
  | 'draining'
  | 'database_away'
  | 'database_refused'
  | 'database_slow'
  | 'database_busy'
  | 'schema'
  | 'check'
  | 'unsettled';

/** The schema `Error` of the specification: the body of every error response. Members are sent in this order. */
export class ErrorBody {
  // Private to the language, because every other member is sent.
  readonly #error: ApiError;

  constructor(
    readonly code: string,
    readonly message: string,
    readonly status: number,
    /** Only errors of modules and of handlers with `@FaultDetails()` have details. */
    readonly details: unknown,
    error: ApiError,
  ) {
    this.#error = error;
  }

  /** The body with the faults of the input as `details`, for handlers with `@FaultDetails()`; the same body without any. */
  withFaults(): ErrorBody {
    const { faults } = this.#error;
    return faults.length === 0 ? this : new ErrorBody(this.code, this.message, this.status, faults, this.#error);
  }

  /** The error itself: filters of modules respond with nothing but the body. */
  get error(): ApiError {
    return this.#error;
  }
}

/** One fault of the input of a request: `ApiError.faults`. */
export interface Fault {
  /** The names of members and indexes of arrays that lead to the value, such as `lines.0.quantity`; empty for the whole input. */
  readonly property: string;
  /**
   * The rule that the value breaks. Of a decorator of class-validator, its name there, such as `isEmail`. Of the platform, the
   * keyword of JSON Schema: `required`, `type`, `format`, `enum`, `pattern`, `minLength`, `maxLength`, `minimum`, `maximum`,
   * `minItems`, `maxItems`, `uniqueItems`, `additionalProperties`; or `storable` for a value that PostgreSQL cannot store.
   */
  readonly rule: string;
  /** The clause of the error's message for this fault. */
  readonly message: string;
  /** The `context` of a rule of class-validator. */
  readonly context?: unknown;
}

export interface ApiErrorOptions extends ErrorOptions {
  /** Sent as the member `details` of the body: any value that `writeJson` can write. */
  readonly details?: unknown;
  /** The faults of the input that the message lists. Handlers with `@FaultDetails()` send them as `details`. */
  readonly faults?: readonly Fault[];
  /** The cause of a 503, for operators only. */
  readonly unavailableCause?: UnavailableCause | undefined;
}

/**
 * An error that ends a request. Throw it anywhere while a request is handled; ErrorFilter sends it. A filter of a
 * module that catches `HttpException` gets it, too.
 *
 * Message and details are public: the client gets them unchanged. Information for operators only belongs into `cause`.
 */
export class ApiError extends HttpException {
  override readonly name = 'ApiError';
  readonly unavailableCause: UnavailableCause | undefined;
  /** The faults of the input that the message lists; empty for other errors. */
  readonly faults: readonly Fault[];
  private readonly details: unknown;

  constructor(
    readonly definition: ErrorDefinition,
    message = definition.message,
    /** Header fields of the response, such as `WWW-Authenticate` or `Allow`. */
    readonly headers: HeaderFields = {},
    options?: ApiErrorOptions,
  ) {
    super(message, definition.status, { cause: options?.cause });
    this.details = options?.details;
    this.faults = options?.faults ?? [];
    this.unavailableCause = options?.unavailableCause;
  }

  /**
   * The body of the response: code, message and status, and the details if there are any. An adapter that replies with
   * it sends the header fields, too.
   */
  override getResponse(): ErrorBody {
    return new ErrorBody(this.definition.code, this.message, this.definition.status, this.details, this);
  }
}

/** The error of an input; its message joins those of the faults. */
export function faultyInput(definition: ErrorDefinition, faults: readonly Fault[], cause?: unknown): ApiError {
  return new ApiError(definition, faults.map(({ message }) => message).join('; '), {}, { faults, cause });
}

/** The client closed the connection before its request was complete. No response is sent, and no error is logged. */
export class RequestAbortedError extends BadRequestException {
  override readonly name = 'RequestAbortedError';
}

/** The 503 of a request. The cause is for operators; the client does not get it. */
export function serviceUnavailable(
  unavailableCause: UnavailableCause,
  message = UNAVAILABLE.message,
  options: ApiErrorOptions = {},
): ApiError {
  return new ApiError(UNAVAILABLE, message, {}, { ...options, unavailableCause });
}

/** The error of a request that has waited too long for the database. No statement was sent for it. */
export function waitedTooLong(): ApiError {
  return serviceUnavailable('database_busy', 'The service did not get to the request in time. Try again.');
}

/** The errors that features have declared for what code beneath them throws. */
export abstract class DeclaredErrors {
  /** Undefined, at once or later, for what nothing is declared for. Never rejects. */
  abstract errorOf(thrown: unknown): Promise<ApiError | undefined> | undefined;
}

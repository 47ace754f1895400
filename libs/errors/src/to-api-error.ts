import { HttpException } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { ApiError, type ApiErrorOptions } from './api-error.js';
import {
  CLIENT_ERROR,
  GENERAL_ERRORS,
  INTERNAL_ERROR,
  SERVER_ERROR,
  TOOK_TOO_LONG,
  VALIDATION_FAILED,
} from './error-catalogue.js';

/** Codes of PostgreSQL (SQLSTATE) for a value that a column, a type or a text cannot take. */
const REFUSED_VALUES = '22001 22003 22007 22008 22009 22015 22021 22P02 22P05'.split(' ');

/** Its code for a statement that it has cancelled. */
const CANCELLED = '57014';

/** What a client sends besides header fields: `body`, `query` and `params` of a request. */
export interface RequestInput {
  readonly body?: unknown;
  readonly query: object;
  readonly params: object;
}

/**
 * The ApiError to send for anything that was thrown. An exception of Nest or of http-errors keeps its status. A statement with parameters
 * of which PostgreSQL refuses a value is 400 `validation_failed`, if the request has an input. A statement that took too long is 500
 * `took_too_long`, not 503 or 504, which clients repeat by themselves. Anything else is 500 `internal_error`.
 *
 * @param input that of the request; undefined outside of one
 */
export function toApiError(exception: unknown, input?: RequestInput): ApiError {
  if (exception instanceof ApiError) return exception;
  const { code, parameters } = exception instanceof Error ? (exception as RefusedStatement) : {};
  if (code === CANCELLED) {
    const options = { cause: exception, unavailableCause: 'database_slow' } as const;
    return new ApiError(TOOK_TOO_LONG, TOOK_TOO_LONG.message, {}, options);
  }
  if (code !== undefined && REFUSED_VALUES.includes(code) && parameters?.length && hasValues(input))
    return new ApiError(VALIDATION_FAILED, 'A value of the request cannot be stored.', {}, { cause: exception });
  const known = exception instanceof HttpException ? fromHttpException(exception) : fromHttpErrors(exception);
  return known ?? httpError(500, '', { cause: exception });
}

/** Members of TypeORM's QueryFailedError. */
type RefusedStatement = Partial<{ readonly code: string; readonly parameters: readonly unknown[] }>;

function hasValues(input: RequestInput | undefined): boolean {
  if (input === undefined) return false;
  const { body, query, params } = input;
  return body !== undefined || Object.keys(query).length > 0 || Object.keys(params).length > 0;
}

/**
 * The ApiError for an exception of Nest. A 4xx keeps its message; an array of messages is joined by `; `. A 5xx gets a fixed message,
 * because such exceptions often quote the error that caused them. The other members of the response become `details`; an `Error` as the
 * response counts as the cause, and no part of it is sent.
 */
function fromHttpException(exception: HttpException): ApiError {
  const status = exception.getStatus();
  const response: unknown = exception.getResponse();
  if (response instanceof Error) return httpError(status, STATUS_CODES[status] ?? 'Error', { cause: exception });
  const members = { errorCode: exception.errorCode, ...(typeof response === 'object' ? response : undefined) };
  const { message, error, ...others } = members as Record<string, unknown>;
  const isUsual = typeof error === 'string' && error.toLowerCase() === STATUS_CODES[status]?.toLowerCase();
  const texts = Array.isArray(message) && message.every((item) => typeof item === 'string') ? message : undefined;
  const isText = texts !== undefined || typeof message === 'string';
  const more = { ...others, statusCode: undefined, ...(isUsual ? {} : { error }), ...(isText ? {} : { message }) };
  const rest = Object.entries(more).filter(([, value]) => value !== undefined);
  const text = texts?.join('; ') ?? exception.message;
  const details = rest.length > 0 ? Object.fromEntries(rest) : texts;
  return httpError(status, text, { cause: exception, details });
}

/**
 * The ApiError for an error of the package http-errors, which many middlewares of Express throw, or for an object that is
 * no `Error` and has a status of 4xx or 5xx as `statusCode` and a message. Undefined for anything else.
 */
function fromHttpErrors(thrown: unknown): ApiError | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { expose, message, status, statusCode } = thrown as Record<string, unknown>;
  if (thrown instanceof Error && (typeof expose !== 'boolean' || status !== statusCode)) return undefined;
  if (typeof statusCode !== 'number' || !isErrorStatus(statusCode) || typeof message !== 'string') return undefined;
  // The message of such an error may be confidential: the package `send` names the path of the file.
  const text = expose === false || message === '' ? (STATUS_CODES[statusCode] ?? 'Error') : message;
  return httpError(statusCode, text, { cause: thrown });
}

/** The ApiError of a status, with its code of the catalogue; 500 if the status is not that of an error. */
function httpError(status: number, message: string, options: ApiErrorOptions): ApiError {
  if (status === 500 || !isErrorStatus(status)) {
    return new ApiError(INTERNAL_ERROR, INTERNAL_ERROR.message, {}, options);
  }
  const definition = GENERAL_ERRORS.get(status) ?? { ...(status < 500 ? CLIENT_ERROR : SERVER_ERROR), status };
  return new ApiError(definition, status < 500 ? message : definition.description, {}, options);
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

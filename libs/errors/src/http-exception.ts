import { HttpException } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { ApiError, type ApiErrorOptions } from './api-error.js';
import { CLIENT_ERROR, GENERAL_ERRORS, INTERNAL_ERROR, SERVER_ERROR, TOOK_TOO_LONG } from './error-catalogue.js';

/** The ApiError to send for anything that was thrown. */
export function toApiError(exception: unknown): ApiError {
  if (exception instanceof ApiError) return exception;
  // PostgreSQL has cancelled a statement. Not 503 or 504, which clients repeat by themselves.
  if (exception instanceof Error && 'code' in exception && exception.code === '57014') {
    const options = { cause: exception, unavailableCause: 'database_slow' } as const;
    return new ApiError(TOOK_TOO_LONG, TOOK_TOO_LONG.message, {}, options);
  }
  const known = exception instanceof HttpException ? fromHttpException(exception) : fromHttpErrors(exception);
  return known ?? httpError(500, '', { cause: exception });
}

/**
 * The ApiError for an exception of Nest. It keeps a status from 400 to 599; any other one becomes 500.
 * A 4xx keeps its message; an array of messages is joined by `; `. A 5xx gets a fixed message, because such exceptions often
 * quote the error that caused them. The rest of the response becomes `details`: the members of an object, or an array of
 * messages, except `statusCode`, `message` and an `error` that is the usual text of the status. If the response is an `Error`,
 * it counts as the cause, and no part of it is sent.
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

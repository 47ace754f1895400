import type { HttpException } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { ApiError, type ApiErrorOptions, type HeaderFields } from './api-error.js';
import {
  BAD_GATEWAY,
  BAD_REQUEST,
  BODY_TOO_LARGE,
  CLIENT_ERROR,
  CONFLICT,
  type ErrorDefinition,
  EXPECTATION_FAILED,
  FORBIDDEN,
  GATEWAY_TIMEOUT,
  GONE,
  HEADERS_TOO_LARGE,
  INTERNAL_ERROR,
  METHOD_NOT_ALLOWED,
  NOT_ACCEPTABLE,
  NOT_FOUND,
  NOT_IMPLEMENTED,
  PRECONDITION_FAILED,
  RATE_LIMITED,
  REQUEST_TIMEOUT,
  SERVER_ERROR,
  UNAUTHORIZED,
  UNAVAILABLE,
  UNPROCESSABLE_CONTENT,
  UNSUPPORTED_MEDIA_TYPE,
  URI_TOO_LONG,
} from './error-catalogue.js';

/** The errors of Nest's exceptions, one for each status. Other statuses are CLIENT_ERROR or SERVER_ERROR. */
export const HTTP_ERRORS: readonly ErrorDefinition[] = [
  BAD_REQUEST,
  UNAUTHORIZED,
  FORBIDDEN,
  NOT_FOUND,
  METHOD_NOT_ALLOWED,
  NOT_ACCEPTABLE,
  REQUEST_TIMEOUT,
  CONFLICT,
  GONE,
  PRECONDITION_FAILED,
  BODY_TOO_LARGE,
  URI_TOO_LONG,
  UNSUPPORTED_MEDIA_TYPE,
  EXPECTATION_FAILED,
  UNPROCESSABLE_CONTENT,
  RATE_LIMITED,
  HEADERS_TOO_LARGE,
  NOT_IMPLEMENTED,
  BAD_GATEWAY,
  UNAVAILABLE,
  GATEWAY_TIMEOUT,
];

const BY_STATUS = new Map(HTTP_ERRORS.map((definition) => [definition.status, definition]));

/** Header fields that RFC 9110 requires or expects with a status. Nest's exceptions cannot carry header fields. */
const HEADERS: Readonly<Record<number, HeaderFields>> = {
  401: { 'WWW-Authenticate': 'Bearer realm="petstore"' },
  429: { 'Retry-After': '1' },
  503: { 'Retry-After': '1' },
};

/**
 * The ApiError for an exception of Nest. It keeps a status from 400 to 599; any other one becomes 500.
 *
 * A 4xx keeps its message; an array of messages is joined by `; `. A 5xx gets a fixed message, because such exceptions often
 * quote the error that caused them. The rest of the response becomes `details`: an array of messages, or the members of an
 * object, except `statusCode`, `message` and an `error` that is the usual text of the status. If the response is an `Error`,
 * it counts as the cause, and no part of it is sent.
 */
export function fromHttpException(exception: HttpException): ApiError {
  const status = exception.getStatus();
  const response: unknown = exception.getResponse();
  if (response instanceof Error) {
    return httpError(status, STATUS_CODES[status] ?? 'Error', { cause: exception });
  }
  const body = membersOf(response, exception);
  return httpError(status, messageOf(body, exception), { cause: exception, details: detailsOf(body, status) });
}

type Body = Readonly<Record<string, unknown>>;

function messageOf({ message }: Body, exception: HttpException): string {
  if (isTextList(message)) return message.join('; ');
  return typeof message === 'number' ? String(message) : exception.message;
}

/** What the body of an exception says besides its status and its message; undefined for nothing. */
function detailsOf({ message, error, ...others }: Body, status: number): unknown {
  const rest: Record<string, unknown> = others;
  delete rest['statusCode'];
  const isUsual = typeof error === 'string' && error.toLowerCase() === STATUS_CODES[status]?.toLowerCase();
  if (error !== undefined && !isUsual) rest['error'] = error;
  if (isTextList(message) && Object.keys(rest).length === 0) return message;
  const isText = message === undefined || typeof message === 'string' || typeof message === 'number';
  if (!isText) rest['message'] = message;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

function isTextList(message: unknown): message is string[] {
  return Array.isArray(message) && message.every((item) => typeof item === 'string');
}

/** The members of the body that stock Nest would send. */
function membersOf(response: unknown, { errorCode }: HttpException): Body {
  if (typeof response === 'object' && response !== null) return { ...response };
  return { message: response, ...(errorCode === undefined ? {} : { errorCode }) };
}

/**
 * The ApiError for an error of the package http-errors, which many middlewares of Express throw, or for an object that is
 * no `Error` and has a status of 4xx or 5xx as `statusCode` and a message. Undefined for anything else.
 */
export function fromHttpErrors(thrown: unknown): ApiError | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { expose, message, status, statusCode } = thrown as Record<string, unknown>;
  if (thrown instanceof Error && (typeof expose !== 'boolean' || status !== statusCode)) return undefined;
  if (typeof statusCode !== 'number' || !isErrorStatus(statusCode) || typeof message !== 'string') return undefined;
  // The message of such an error may be confidential: the package `send` names the path of the file.
  const text = expose === false || message === '' ? (STATUS_CODES[statusCode] ?? 'Error') : message;
  return httpError(statusCode, text, { cause: thrown });
}

/** The ApiError of a status, with its code of the catalogue; 500 if the status is not that of an error. */
export function httpError(status: number, message: string, options: ApiErrorOptions): ApiError {
  if (status === 500 || !isErrorStatus(status)) {
    return new ApiError(INTERNAL_ERROR, INTERNAL_ERROR.message, {}, options);
  }
  const definition = BY_STATUS.get(status) ?? { ...(status < 500 ? CLIENT_ERROR : SERVER_ERROR), status };
  return new ApiError(definition, status < 500 ? message : definition.description, HEADERS[status], options);
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

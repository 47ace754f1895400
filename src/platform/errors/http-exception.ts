import type { HttpException } from '@nestjs/common';
import { ApiError, type HeaderFields } from './api-error.js';
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

/** Header fields that RFC 9110 requires or expects with a status, for exceptions, which cannot carry any. */
const HEADERS: Readonly<Record<number, HeaderFields>> = {
  401: { 'WWW-Authenticate': 'Bearer realm="petstore"' },
  429: { 'Retry-After': '1' },
  503: { 'Retry-After': '1' },
};

/**
 * The ApiError for an exception of Nest with a status of 4xx, or 501 to 599. It keeps the status. A 4xx keeps the
 * message too. A 5xx gets a fixed message, because exceptions of that kind often quote the error that caused them.
 * Undefined for any other status.
 */
export function fromHttpException(exception: HttpException): ApiError | undefined {
  const status = exception.getStatus();
  if (!(status >= 400 && status <= 599) || status === 500) return undefined;
  const definition = BY_STATUS.get(status) ?? { ...(status < 500 ? CLIENT_ERROR : SERVER_ERROR), status };
  const message = status < 500 ? exception.message : definition.description;
  return new ApiError(definition, message, HEADERS[status], { cause: exception });
}

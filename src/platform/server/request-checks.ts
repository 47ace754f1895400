import type { IncomingMessage } from 'node:http';
import { ApiError } from '../errors/api-error.js';
import { BAD_REQUEST, URI_TOO_LONG } from '../errors/error-catalogue.js';
import { countHeader } from './header-fields.js';
import { MAX_URI_LENGTH } from './server-limits.js';

/**
 * Checks a request before routing: length of the target, HTTP version, transfer coding and `Host`. Node's parser has
 * already refused everything that is not HTTP syntax (`parser-errors.ts`).
 *
 * @returns the error to answer with, URI_TOO_LONG or BAD_REQUEST; undefined for a valid request
 */
export function checkRequest(request: IncomingMessage): ApiError | undefined {
  if (request.url !== undefined && request.url.length > MAX_URI_LENGTH) {
    return new ApiError(URI_TOO_LONG, `The request target must not be longer than ${MAX_URI_LENGTH} characters.`);
  }
  if (request.httpVersionMajor !== 1) {
    return new ApiError(BAD_REQUEST, 'The request is not valid HTTP/1.1.');
  }
  // RFC 9112, section 6.1. Node's parser ensures that `chunked` is the last coding and that Content-Length is absent.
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || request.httpVersion !== '1.1')) {
    return new ApiError(BAD_REQUEST, 'The one transfer coding is chunked, in HTTP/1.1.');
  }
  // RFC 9112, section 3.2.
  if (request.httpVersion === '1.1' && countHeader(request, 'host') !== 1) {
    return new ApiError(BAD_REQUEST, 'HTTP/1.1 requires exactly one Host header field.');
  }
  return undefined;
}

import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { ApiError, BAD_REQUEST, URI_TOO_LONG } from '#errors';
import { MAX_URI_LENGTH } from './server-limits.js';

/** The message for a request of another HTTP version. */
export const UNSUPPORTED_VERSION = 'The request must be HTTP/1.1 or HTTP/1.0.';

/**
 * Checks a request before routing: target, HTTP version, transfer coding, and the fields that may be sent only once. Node's parser has
 * already refused what is not HTTP syntax (`parser-errors.ts`).
 *
 * @returns the error to answer with, URI_TOO_LONG or BAD_REQUEST; undefined for a valid request
 */
export function checkRequest(request: IncomingMessage): ApiError | undefined {
  const { headers, httpVersion, url = '' } = request;
  if (url.length > MAX_URI_LENGTH) {
    return new ApiError(URI_TOO_LONG, `The request target must not be longer than ${MAX_URI_LENGTH} characters.`);
  }
  if (request.httpVersionMajor !== 1) return new ApiError(BAD_REQUEST, UNSUPPORTED_VERSION);
  if (url.includes('#') || !(url.startsWith('/') || isOtherTarget(request.method, url))) {
    return new ApiError(BAD_REQUEST, 'The request target must be a path, or an http URI without a fragment.');
  }
  // RFC 9112, section 6.1. Node's parser ensures that `chunked` is the last coding and that Content-Length is absent.
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion !== '1.1')) {
    return new ApiError(BAD_REQUEST, 'The one transfer coding is chunked, in HTTP/1.1.');
  }
  // RFC 9112, section 3.2. Several fields are joined by a comma and a space, so they are no host.
  if (headers.host === undefined ? httpVersion === '1.1' : !isHost(headers.host)) {
    const message = 'HTTP/1.1 requires exactly one Host header field, a host name or address, and possibly a port.';
    return new ApiError(BAD_REQUEST, message);
  }
  if (headers['content-type'] !== undefined && countHeader(request, 'content-type') > 1) {
    return new ApiError(BAD_REQUEST, 'Content-Type may be sent only once.');
  }
  return undefined;
}

/** A percent-encoded letter, digit, `-`, `.`, `_` or `~`, which is the same as the character (RFC 3986, section 2.3). */
const UNRESERVED = /%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi;

/**
 * The request target as path and query, with the unreserved characters of the path decoded, once: the target is the same (RFC
 * 9110, section 4.2.3). Everything else stays encoded, `%2F` too. Express would read an absolute URI by rules of its own.
 */
export function normalTarget(target: string): string {
  const url = target.replace(/^https?:\/\/[^/?]+\/?/i, '/');
  const [path = ''] = url.split('?', 1);
  if (!path.includes('%') || /%(?![\da-f]{2})/i.test(path)) return url;
  return path.replace(UNRESERVED, (escape) => decodeURIComponent(escape)) + url.slice(path.length);
}

/** Whether a target that is no path is valid: an absolute URI, or `*` with OPTIONS (RFC 9112, section 3.2). */
function isOtherTarget(method: string | undefined, url: string): boolean {
  const authority = /^https?:\/\/([^/?]+)/i.exec(url)?.[1];
  return authority === undefined
    ? url === '*' && method === 'OPTIONS'
    : !authority.startsWith(':') && isHost(authority);
}

/** A name or IPv4 address, which may be empty, and a port (RFC 3986, sections 3.2.2 and 3.2.3). */
const NAME_AND_PORT = /^(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*(?::\d*)?$/i;
const ADDRESS_AND_PORT = /^\[([\d.:a-f]+)\](?::\d*)?$/i;

/** Whether a text is `uri-host [ ":" port ]`, the value of `Host` (RFC 9110, section 7.2). */
function isHost(text: string): boolean {
  return NAME_AND_PORT.test(text) || isIPv6(ADDRESS_AND_PORT.exec(text)?.[1] ?? '');
}

/** How often a header field was sent, by its name in lower case. `request.headers` keeps only the first `Host` and `Authorization`. */
export function countHeader(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index] as string;
    if (candidate.length === name.length && candidate.toLowerCase() === name) count++;
  }
  return count;
}

/** Whether the request announces a body (RFC 9112, section 6.3). */
export function announcesBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return (length !== undefined && length !== '0') || request.headers['transfer-encoding'] !== undefined;
}

/**
 * Whether the body of a request has arrived, and Node has not yet said so: between the last byte and setting `complete` it calls code
 * that waits for promises and ticks. In the next turn it has.
 */
export function hasJustArrived(request: IncomingMessage): boolean {
  const { complete, headers, readableLength } = request;
  return !complete && readableLength > 0 && readableLength === Number(headers['content-length']);
}

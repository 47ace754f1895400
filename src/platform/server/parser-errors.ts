import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from '../errors/api-error.js';
import {
  BAD_REQUEST,
  BODY_TOO_LARGE,
  HEADERS_TOO_LARGE,
  REQUEST_TIMEOUT,
  type ErrorDefinition,
} from '../errors/error-catalogue.js';
import { newRequestId, REQUEST_ID_HEADER } from './request-id.js';
import { MAX_HEADER_BYTES } from './server-limits.js';

/**
 * Answers the errors that Node's HTTP parser finds before there is a request for Express: 400, 408 (a request that does
 * not arrive in time), 413 and 431, and 400 for CONNECT. The answer is an Error body, sent behind the answers to
 * earlier requests of the connection. Then the connection is closed.
 *
 * @param onAnswered called after each answer with its error and its `X-Request-Id`
 */
export function answerParserErrors(server: Server, onAnswered: (error: ApiError, requestId: string) => void): void {
  const latest = new WeakMap<Duplex, { request: IncomingMessage; response: ServerResponse }>();
  const remember = (request: IncomingMessage, response: ServerResponse): void => {
    latest.set(request.socket, { request, response });
  };
  server.prependListener('request', remember);
  server.prependListener('checkContinue', remember);
  server.prependListener('checkExpectation', remember);

  const answerInOrder = (socket: Duplex, error: ApiError | undefined): void => {
    const answer = (): void => {
      if (error === undefined || !socket.writable) {
        socket.destroy();
        return;
      }
      const requestId = newRequestId();
      socket.end(errorResponse(error, requestId), () => socket.destroy());
      onAnswered(error, requestId);
    };
    const pending = latest.get(socket);
    if (pending === undefined || pending.response.writableFinished || pending.response.destroyed) {
      answer();
    } else if (pending.request.complete) {
      // The error belongs to a later request: wait for the answer to the pending one.
      pending.response.once('close', answer);
    } else if (pending.response.headersSent) {
      // The error is in the body of a request whose answer has begun.
      socket.destroy();
    } else {
      answer();
    }
  };

  server.on('clientError', (cause: NodeJS.ErrnoException, socket) => answerInOrder(socket, parserError(cause)));

  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    // Node removes its own listeners from the socket of CONNECT. Without one, a reset would end the process.
    socket.on('error', () => socket.destroy());
    answerInOrder(socket, new ApiError(BAD_REQUEST, 'This server is no proxy: CONNECT is not supported.'));
  });
}

/** The error to send; undefined when the connection itself failed, so that no answer can arrive. */
function parserError({ code }: NodeJS.ErrnoException): ApiError | undefined {
  const known: Record<string, [ErrorDefinition, string]> = {
    ERR_HTTP_REQUEST_TIMEOUT: [REQUEST_TIMEOUT, 'The request did not arrive in time.'],
    HPE_HEADER_OVERFLOW: [HEADERS_TOO_LARGE, `The header section must not be larger than ${MAX_HEADER_BYTES} bytes.`],
    HPE_CHUNK_EXTENSIONS_OVERFLOW: [BODY_TOO_LARGE, 'The chunk extensions of the body are too large.'],
  };
  const match = known[code ?? ''];
  if (match) {
    return new ApiError(...match);
  }
  return code?.startsWith('HPE_') ? new ApiError(BAD_REQUEST, 'The request is not valid HTTP/1.1.') : undefined;
}

/** The bytes of a whole response. */
function errorResponse(error: ApiError, requestId: string): string {
  const { status } = error.definition;
  const body = JSON.stringify(error.body());
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `${REQUEST_ID_HEADER}: ${requestId}`,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from '../errors/api-error.js';
import {
  BAD_REQUEST,
  BODY_TOO_LARGE,
  HEADERS_TOO_LARGE,
  REQUEST_TIMEOUT,
  type ErrorDefinition,
} from '../errors/error-catalogue.js';
import { STATUS_CODES } from 'node:http';
import { MAX_HEADER_BYTES } from './server-limits.js';
import { newRequestId, REQUEST_ID_HEADER } from './request-context.js';

/**
 * Answers what Node's parser refuses before there is a request: with an Error body, in order behind the answers that are
 * still on their way, and then closes the connection.
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
      socket.end(rawAnswer(error, requestId), () => socket.destroy());
      onAnswered(error, requestId);
    };
    const pending = latest.get(socket);
    if (pending === undefined || pending.response.writableFinished || pending.response.destroyed) {
      answer();
    } else if (pending.request.complete) {
      pending.response.once('close', answer);
    } else if (pending.response.headersSent) {
      socket.destroy();
    } else {
      answer();
    }
  };

  server.on('clientError', (cause: NodeJS.ErrnoException, socket) => answerInOrder(socket, parserError(cause)));

  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    // Node has handed the socket over, and with it the duty to hear of a client that resets the connection.
    socket.on('error', () => socket.destroy());
    answerInOrder(socket, new ApiError(BAD_REQUEST, 'This server is no proxy: CONNECT is not supported.'));
  });
}

/** What the client is told; undefined when there is no connection left to tell it on. */
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

function rawAnswer(error: ApiError, requestId: string): string {
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

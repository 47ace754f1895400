import type { Request } from 'express';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  ApiError,
  BAD_REQUEST,
  BODY_TOO_LARGE,
  type ErrorDefinition,
  HEADERS_TOO_LARGE,
  REQUEST_TIMEOUT,
} from '#errors';
import { answeringOn, type Connections } from './connections.js';
import { advance, BODY, REQUEST_ID_HEADER, requestIdFrom } from '../requests/request-context.js';
import { UNSUPPORTED_VERSION } from '../requests/request-checks.js';
import { MAX_HEADER_BYTES } from '../requests/server-limits.js';

/** An error of the socket or of Node's parser. */
interface ParserError extends NodeJS.ErrnoException {
  /** The bytes that the parser was reading. */
  readonly rawPacket?: Buffer;
  /** The parser's description of the fault. */
  readonly reason?: string;
}

interface ParserErrorListener {
  /** Must answer a request whose broken body is read by code of a module, which may wait for ever for its end. */
  abandon(request: Request, error: ApiError): void;
  /** The header fields that let a page of an origin read a response. The origin is undefined if the bytes name none. */
  corsFieldsFor(origin: string | undefined): readonly string[];
  /** Called after each response to bytes that are no request. */
  refused(error: ApiError, requestId: string): void;
}

/**
 * Responds to what Node's HTTP parser refuses: 400, 408 (a request that does not arrive in time), 413 and 431. Then the connection is
 * closed. An error in a body belongs to its request, which fails by it. Bytes that are no request get an Error body and a new
 * `X-Request-Id`; behind requests without a response they get none, and the connection is closed after those responses.
 */
export function answerParserErrors(server: Server, connections: Connections, listener: ParserErrorListener): void {
  server.on('clientError', (cause: ParserError, socket: Duplex) => {
    // A silent connection: `Connections` closes it after KEEP_ALIVE_TIMEOUT_MS.
    if (cause.code === 'ERR_HTTP_REQUEST_TIMEOUT' && (socket as Socket).bytesRead === 0) return;
    const error = parserError(cause);
    const broken = error && connections.fail(socket);
    if (error === undefined || (broken === 'idle' && !socket.writable)) {
      socket.destroy();
    } else if (broken === 'idle') {
      const requestId = requestIdFrom();
      const head = cause.rawPacket?.toString('latin1') ?? '';
      const fields = listener.corsFieldsFor(/\r\nOrigin:([^\r\n]+)\r\n/i.exec(head)?.[1]?.trim());
      const response = errorResponse(error, requestId, fields);
      // The head alone, to HEAD.
      const sent = /^\s*HEAD /.test(head) ? response.slice(0, response.indexOf('\r\n\r\n') + 4) : response;
      socket.end(sent, () => socket.destroy());
      listener.refused(error, requestId);
    } else if (broken && isUnanswerable(broken, cause, socket)) {
      socket.destroy();
    } else if (broken && broken.context.bodyStage !== BODY.BROKEN) {
      const { context } = broken;
      // The platform's own reading fails with the error, and the request ends like any other.
      const isModules = context.bodyStage < BODY.READ;
      advance(context, BODY.BROKEN);
      context.bodyError = error;
      if (broken.listenerCount('error') > 0) broken.emit('error', error);
      if (isModules && broken.readableFlowing !== null) listener.abandon(broken, error);
    }
  });
}

/** Whether a request with a broken body has its response, or is not the platform's, or its client closed the connection inside the body. */
function isUnanswerable(request: Request, { code }: NodeJS.ErrnoException, socket: Duplex): boolean {
  const { context, res } = request;
  const isCut = code === 'HPE_INVALID_EOF_STATE' && answeringOn(socket)?.req === request;
  return res?.closed === true || context.isForeign || isCut;
}

/** By the code of Node's error. Other errors of the parser are BAD_REQUEST. */
const ERRORS: Readonly<Record<string, [ErrorDefinition, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [REQUEST_TIMEOUT, REQUEST_TIMEOUT.message],
  HPE_HEADER_OVERFLOW: [HEADERS_TOO_LARGE, `The header section must not be larger than ${MAX_HEADER_BYTES} bytes.`],
  HPE_INVALID_VERSION: [BAD_REQUEST, UNSUPPORTED_VERSION],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [BODY_TOO_LARGE, 'The chunk extensions of the body are too large.'],
};

/** The error to send; undefined if the connection itself failed, so that a response cannot be sent. */
function parserError({ code = '', reason }: ParserError): ApiError | undefined {
  // The version may be a known one: the line does not end with CR LF.
  const known = reason === 'Expected CRLF after version' ? undefined : ERRORS[code];
  if (known) return new ApiError(...known);
  return code.startsWith('HPE_') ? new ApiError(BAD_REQUEST) : undefined;
}

function errorResponse(error: ApiError, requestId: string, fields: readonly string[]): string {
  const { status } = error.definition;
  const body = JSON.stringify(error.getResponse());
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `${REQUEST_ID_HEADER}: ${requestId}`,
    ...fields,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

import type { Request, Response } from 'express';
import { IncomingMessage } from 'node:http';
import { ApiError } from '../../errors/api-error.js';
import { MISSING_BODY, UNSUPPORTED_MEDIA_TYPE } from '../../errors/error-catalogue.js';
import { RequestAbortedError } from '../../errors/request-aborted.error.js';
import { readJson } from '../../json/reader/json-reader.js';
import { bodyTooLarge, CONTENT_CODINGS, contentOf, isDecoded, jsonOf, undoCoding } from './body-content.js';
import type { BodyPlan, BodyTypes } from './body-plan.js';
import { CHUNK_COST } from './server-limits.js';

/** The memory that all arriving bodies share. */
export interface SharedMemory {
  /** Takes bytes. If too few are left, takes nothing and returns an error. */
  take(bytes: number): ApiError | undefined;
  /** Gives bytes back. */
  release(bytes: number): void;
}

/**
 * Reads and parses the body of a request as `request.context.bodyPlan` says; without a plan, as JSON. Nothing is read before
 * this call, so guards refuse a request without waiting for its body.
 *
 * @param serverMaxBytes MAX_BODY_BYTES, 64 KiB by default, the limit if the plan sets none; checked against
 *   Content-Length, and while reading
 * @param memory bounds the bytes of bodies that are still arriving or are being decoded
 * @param isArriving whether the body has not arrived completely together with the header section
 * @throws ApiError UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, MISSING_BODY or MALFORMED_JSON, and the error of `memory`
 * @throws RequestAbortedError when the connection closes before the whole body has arrived
 */
export async function readBody(
  request: Request,
  serverMaxBytes: number,
  memory: SharedMemory,
  isArriving: boolean,
): Promise<unknown> {
  const { context, headers } = request;
  const plan = context.bodyPlan;
  const maxBytes = plan?.maxBytes ?? serverMaxBytes;
  const declaredLength = Number(request.headers['content-length'] ?? 0);
  if (declaredLength === 0 && request.headers['transfer-encoding'] === undefined) {
    throw missingBody();
  }
  if (plan?.types) {
    requireType(headers['content-type'], headers['content-encoding'], plan, plan.types);
  } else {
    requireJson(headers['content-type'], headers['content-encoding']);
  }
  if (declaredLength > maxBytes) {
    throw bodyTooLarge(maxBytes);
  }
  context.isBodyRead = true;
  let bytes = await readBytes(request, maxBytes, isArriving ? memory : undefined);
  if (bytes.length === 0) {
    throw missingBody();
  }
  if (plan === undefined) {
    // Middleware has asked for the body before a handler is chosen, so there is no plan yet.
    request.rawBody = bytes;
    return readJson(bytes);
  }
  const coding = plan.types && codingOf(headers['content-encoding']);
  if (coding !== undefined) bytes = await undoCodingWithin(memory, bytes, coding, maxBytes);
  if (plan.keepsBytes) request.rawBody = bytes;
  if (plan.types) return contentOf(bytes, mediaTypeOf(headers['content-type']), plan);
  return jsonOf(bytes, plan);
}

/** Decodes a body. Takes memory for the largest content, because the size is not known in advance. */
async function undoCodingWithin(
  memory: SharedMemory,
  bytes: Buffer,
  coding: string,
  maxBytes: number,
): Promise<Buffer> {
  const refusal = memory.take(maxBytes);
  if (refusal) throw refusal;
  try {
    return await undoCoding(bytes, coding, maxBytes);
  } finally {
    memory.release(maxBytes);
  }
}

/**
 * Adds a promise of each of these members to the promise of a body, because Nest passes the property `name` of
 * `request.body` to `@Body('name')`.
 */
export function withMembers<Body>(body: Promise<Body>, names: readonly string[]): Promise<Body> {
  for (const name of names) {
    if (Object.hasOwn(body, name)) continue;
    const member = body.then((read) => memberOf(read, name));
    // Nest awaits the member unless another parameter fails first; then nobody else would handle the error.
    member.catch(() => undefined);
    Reflect.defineProperty(body, name, { value: member });
  }
  return body;
}

function memberOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Record<string, unknown>)[name]
    : undefined;
}

/**
 * Sends `100 Continue` when the platform or code of a module begins to read the body of a request that expects it
 * (RFC 9110, section 10.1.1).
 */
export function continueWhenRead(request: Request, response: Response): void {
  const { context } = request;
  context.expectsContinue = true;
  request._read = function (size) {
    if (context.expectsContinue && !response.headersSent) {
      context.expectsContinue = false;
      response.writeContinue();
    }
    IncomingMessage.prototype._read.call(this, size);
  };
}

/** Whether the body has another media type than the handler's: application/json, unless the plan names other types. */
export function isOfOtherType({ headers }: IncomingMessage, { types }: Pick<BodyPlan, 'types'>): boolean {
  const mediaType = mediaTypeOf(headers['content-type']);
  return types ? !types.pattern.test(mediaType) : mediaType !== 'application/json';
}

function mediaTypeOf(contentType = ''): string {
  return contentType.split(';', 1).join().trim().toLowerCase();
}

/** Whether the request announces a body (RFC 9112, section 6.3). */
export function announcesBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return (length !== undefined && length !== '0') || request.headers['transfer-encoding'] !== undefined;
}

function requireJson(contentType: string | undefined, contentEncoding: string | undefined): void {
  if (contentType !== 'application/json') {
    if (mediaTypeOf(contentType) !== 'application/json') {
      throw unsupportedMediaType(UNSUPPORTED_MEDIA_TYPE.message);
    }
    const [, ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
    if (!parameters.every((parameter) => parameter === '' || /^charset="?utf-8"?$/.test(parameter))) {
      throw unsupportedMediaType('The body must be UTF-8; application/json takes no other charset or parameter.');
    }
  }
  if (contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity') {
    throw unsupportedMediaType('The body must be sent without a Content-Encoding.');
  }
}

const UTF8_PARAMETER = /^charset="?(?:utf-8|us-ascii)"?$/;

function requireType(
  contentType: string | undefined,
  contentEncoding: string | undefined,
  { form }: BodyPlan,
  { names, pattern }: BodyTypes,
): void {
  const mediaType = mediaTypeOf(contentType);
  if (!pattern.test(mediaType)) {
    if (names.includes(mediaType)) {
      throw new Error(`Nobody has read the body, which is ${mediaType}: bind a reader to the handler, such as multer.`);
    }
    throw unsupportedMediaType(`The body must be sent as Content-Type: ${names.join(' or ')}.`, names);
  }
  const charset = contentType?.split(';').find((part) => /^\s*charset=/i.test(part));
  if (charset !== undefined && isDecoded(mediaType, form) && !UTF8_PARAMETER.test(charset.trim().toLowerCase())) {
    throw unsupportedMediaType('The body must be UTF-8.', names);
  }
  const coding = codingOf(contentEncoding);
  if (coding !== undefined && !CONTENT_CODINGS.includes(coding)) {
    const codings = CONTENT_CODINGS.join(', ');
    throw unsupportedMediaType(`The Content-Encoding of the body must be one of ${codings}.`, names, codings);
  }
}

/** The content coding of a body, in lower case; undefined for none. */
function codingOf(contentEncoding: string | undefined): string | undefined {
  const coding = contentEncoding?.trim().toLowerCase();
  return coding === 'identity' ? undefined : coding;
}

function readBytes(request: IncomingMessage, maxBytes: number, memory: SharedMemory | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let length = 0;
    let taken = 0;
    let isSettled = false;
    const fail = (error: Error): void => {
      isSettled = true;
      chunks = [];
      memory?.release(taken);
      reject(error);
    };
    const onAborted = (): void => {
      if (!isSettled) fail(new RequestAbortedError('The client closed the connection.'));
    };
    if (request.readableEnded) {
      throw new Error('The body of this request has been read already.');
    }
    if (request.destroyed) {
      // The connection closed before this call, so no further event will arrive.
      onAborted();
      return;
    }
    // The listeners are never removed: that would cost more than checking `isSettled`.
    request.on('data', (chunk: Buffer) => {
      if (isSettled) return;
      length += chunk.length;
      if (length > maxBytes) {
        fail(bodyTooLarge(maxBytes));
        return;
      }
      if (memory !== undefined) {
        const refusal = memory.take(chunk.length + CHUNK_COST);
        if (refusal) {
          fail(refusal);
          return;
        }
        taken += chunk.length + CHUNK_COST;
      }
      chunks.push(chunk);
    });
    request.on('end', () => {
      if (isSettled) return;
      isSettled = true;
      memory?.release(taken);
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
      // Frees the bytes: the listeners keep `chunks` alive as long as the request.
      chunks = [];
    });
    request.on('error', onAborted).on('close', onAborted);
  });
}

function missingBody(): ApiError {
  return new ApiError(MISSING_BODY);
}

/**
 * @param types the media types that the handler accepts
 * @param codings the accepted content codings, if the coding is the fault (RFC 7694)
 */
function unsupportedMediaType(
  message: string,
  types: readonly string[] = ['application/json'],
  codings?: string,
): ApiError {
  const fields = { Accept: types.join(', '), ...(codings === undefined ? {} : { 'Accept-Encoding': codings }) };
  return new ApiError(UNSUPPORTED_MEDIA_TYPE, message, fields);
}

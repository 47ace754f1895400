import type { Request, Response } from 'express';
import { IncomingMessage } from 'node:http';
import { ApiError } from '../../errors/api-error.js';
import { MISSING_BODY } from '../../errors/error-catalogue.js';
import { readJson } from '../../json/reader/json-reader.js';
import type { BodyPlan } from '../requests/body-plan.js';
import type { ArrivingBodies } from './arriving-bodies.js';
import { readBytes } from './body-bytes.js';
import { bodyTooLarge, contentOf, jsonOf, undoCoding } from './body-content.js';
import { codingOf, mediaTypeOf, requireJson, requireType } from './media-types.js';

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
  memory: ArrivingBodies,
  isArriving: boolean,
): Promise<unknown> {
  const { context } = request;
  const plan = context.bodyPlan;
  const maxBytes = plan?.maxBytes ?? serverMaxBytes;
  checkHeaderFields(request, plan, maxBytes);
  context.isBodyRead = true;
  const bytes = await readBytes(request, maxBytes, isArriving ? memory : undefined);
  if (bytes.length === 0) throw missingBody();
  if (plan === undefined) {
    // Middleware has asked for the body before a handler is chosen, so there is no plan yet.
    request.rawBody = bytes;
    return readJson(bytes);
  }
  const coding = plan.types && codingOf(request.headers['content-encoding']);
  const content = coding === undefined ? bytes : await undoCodingWithin(memory, bytes, coding, maxBytes);
  if (plan.keepsBytes) request.rawBody = content;
  return plan.types ? contentOf(content, mediaTypeOf(request.headers['content-type']), plan) : jsonOf(content, plan);
}

/** Refuses a body that its header fields show to be missing, of another media type, or too large. */
function checkHeaderFields({ headers }: IncomingMessage, plan: BodyPlan | undefined, maxBytes: number): void {
  const declaredLength = Number(headers['content-length'] ?? 0);
  if (declaredLength === 0 && headers['transfer-encoding'] === undefined) throw missingBody();
  if (plan?.types) requireType(headers['content-type'], headers['content-encoding'], plan, plan.types);
  else requireJson(headers['content-type'], headers['content-encoding']);
  if (declaredLength > maxBytes) throw bodyTooLarge(maxBytes);
}

/** Decodes a body. Takes memory for the largest content, because the size is not known in advance. */
async function undoCodingWithin(
  memory: ArrivingBodies,
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

function missingBody(): ApiError {
  return new ApiError(MISSING_BODY);
}

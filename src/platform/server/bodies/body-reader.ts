import type { Request, Response } from 'express';
import { IncomingMessage } from 'node:http';
import { ApiError, RequestAbortedError } from '../../errors/api-error.js';
import { BODY_TOO_LARGE, MISSING_BODY } from '../../errors/error-catalogue.js';
import { serviceUnavailable } from '../../errors/service-unavailable.js';
import { readJson } from '../../json/json-reader.js';
import { announcesBody } from '../requests/request-checks.js';
import type { RequestsInFlight } from '../requests/requests-in-flight.js';
import { CHUNK_COST, MAX_ARRIVING_BODY_BYTES } from '../requests/server-limits.js';
import { type BodyPlan, mediaTypeFault, unsupportedMediaType } from './media-types.js';

const TOO_MANY_BODIES = serviceUnavailable('bodies');

/** Reads and parses bodies, within the limit of each one and a common bound of memory. */
export class BodyReader {
  /** Bytes of all bodies of this process that are arriving or being decoded. */
  private arriving = 0;

  constructor(private readonly inFlight: RequestsInFlight) {}

  /**
   * The parsed body: JSON by the rules of `readJson`; other types, which a handler declares, by Express's parsers. A promise,
   * unless a JSON body has arrived together with its header section. Undefined for a body that the plan does not require or
   * leaves to a module.
   *
   * @throws ApiError UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, MISSING_BODY, MALFORMED_JSON or BAD_REQUEST; UNAVAILABLE when too
   *   many bodies are arriving, or too many requests are in flight when the body has arrived; the error of the HTTP parser
   * @throws RequestAbortedError when the connection closes before the whole body has arrived
   */
  read(request: Request, plan: BodyPlan): unknown {
    const { headers } = request;
    if (!announcesBody(request)) return noBody(plan);
    // The parser refused the body while the API key was looked up: waiting for the rest would never end.
    if (request.context.bodyError) throw request.context.bodyError;
    if (plan.leavesMultipart && /^multipart\//i.test(headers['content-type'] ?? '')) return undefined;
    const fault = mediaTypeFault(request, plan);
    if (fault) {
      if (plan.isRequired) throw fault;
      return undefined;
    }
    if (Number(headers['content-length'] ?? 0) > plan.maxBytes) throw bodyTooLarge(plan);
    if (plan.types === undefined && request.complete) return parseJson(request, arrivedBytes(request, plan), plan);
    return this.inFlight.readMeanwhile(request, () => this.readArriving(request, plan));
  }

  private async readArriving(request: Request, plan: BodyPlan): Promise<unknown> {
    const { context } = request;
    context.isBodyRead = true;
    try {
      if (request.destroyed || context.bodyError) throw aborted();
      if (plan.types === undefined) return parseJson(request, await this.bytesOf(request, plan), plan);
      return await this.parse(request, plan, plan.types);
    } catch (error) {
      throw context.bodyError ?? error;
    }
  }

  private bytesOf(request: Request, plan: BodyPlan): Promise<Buffer> {
    return this.metered(request, plan, (resolve) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => resolve(Buffer.concat(chunks)));
    });
  }

  /** Reads a body with Express's parser, which also undoes its content coding. */
  private async parse(request: Request, plan: BodyPlan, types: NonNullable<BodyPlan['types']>): Promise<unknown> {
    const body = await this.metered(request, plan, (resolve, reject) => {
      void types.parserOf(request)(request, request.res as Response, (error?: unknown) => {
        if (error === undefined) resolve(request.body);
        else reject(parserError(error, plan));
      });
    });
    const bytes = request.rawBody ?? Buffer.alloc(0);
    if (!plan.keepsBytes) delete request.rawBody;
    if (bytes.length === 0) return noBody(plan);
    return types.isJson(request) ? readJson(bytes) : body;
  }

  /**
   * Calls `read`, and rejects when the body becomes too large, the memory for all bodies is exhausted, or the connection
   * fails. A decoded body counts with its largest size, because the size is not known in advance.
   */
  private async metered<Body>(
    request: Request,
    plan: BodyPlan,
    read: (resolve: (body: Body) => void, reject: (error: unknown) => void) => void,
  ): Promise<Body> {
    let length = 0;
    let taken = 0;
    const take = (bytes: number): ApiError | undefined => {
      if (this.arriving + bytes > MAX_ARRIVING_BODY_BYTES) return TOO_MANY_BODIES;
      this.arriving += bytes;
      taken += bytes;
      return undefined;
    };
    try {
      return await new Promise<Body>((resolve, reject) => {
        const isCoded = plan.types !== undefined && request.headers['content-encoding'] !== undefined;
        const refusal = isCoded ? take(plan.maxBytes) : undefined;
        if (refusal) throw refusal;
        request.on('data', (chunk: Buffer) => {
          length += chunk.length;
          const fault = length > plan.maxBytes ? bodyTooLarge(plan) : take(chunk.length + CHUNK_COST);
          if (fault === undefined) return;
          // `read` must not keep the rest.
          request.removeAllListeners('data');
          reject(fault);
        });
        request.on('error', () => reject(aborted()));
        request.on('close', () => {
          if (!request.readableEnded) reject(aborted());
        });
        read(resolve, reject);
      });
    } finally {
      this.arriving -= taken;
    }
  }
}

/** The bytes of a body that has arrived completely. */
function arrivedBytes(request: Request, plan: BodyPlan): Buffer {
  if (request.destroyed) throw aborted();
  const bytes = (request.read() as Buffer | null) ?? Buffer.alloc(0);
  if (bytes.length > plan.maxBytes) throw bodyTooLarge(plan);
  return bytes;
}

function parseJson(request: Request, bytes: Buffer, plan: BodyPlan): unknown {
  if (plan.keepsBytes) request.rawBody = bytes;
  return bytes.length === 0 ? noBody(plan) : readJson(bytes);
}

function noBody({ isRequired }: BodyPlan): undefined {
  if (isRequired) throw new ApiError(MISSING_BODY);
}

function bodyTooLarge({ maxBytes }: BodyPlan): ApiError {
  return new ApiError(BODY_TOO_LARGE, `The body must not be larger than ${maxBytes} bytes.`);
}

/** The error for one of Express's parsers. The error filter knows those that stay unchanged. */
function parserError(error: unknown, plan: BodyPlan): unknown {
  const { status, type, message } = error as { status?: number; type?: string; message: string };
  if (type === 'entity.too.large') return bodyTooLarge(plan);
  if (type === 'request.aborted') return aborted();
  return status === 415 ? unsupportedMediaType(message, plan.types) : error;
}

function aborted(): RequestAbortedError {
  return new RequestAbortedError('The client closed the connection.');
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

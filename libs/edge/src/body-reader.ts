import type { Request } from 'express';
import { isUtf8 } from 'node:buffer';
import { parse as parseUrlEncoded, type ParsedUrlQuery, unescape } from 'node:querystring';
import {
  ApiError,
  BODY_TOO_LARGE,
  type HeaderFields,
  MISSING_BODY,
  RequestAbortedError,
  serviceUnavailable,
  UNSUPPORTED_MEDIA_TYPE,
  VALIDATION_FAILED,
} from '#errors';
import { type JsonLimits, readJson } from '#json';
import { announcesBody, hasJustArrived } from './requests/request-checks.js';
import { advance, BODY } from './requests/request-context.js';
import type { RequestsInFlight } from './requests/requests-in-flight.js';
import { CHUNK_COST, LARGE_BODY_BYTES, MAX_BYTES_OF_BODIES, MAX_FORM_BYTES } from './requests/server-limits.js';
import type { Turns } from './requests/turns.js';

const JSON_TYPE = 'application/json';
const TOO_MANY_BODIES = serviceUnavailable('bodies');

/** The body that a handler takes. Made once for each handler. */
export interface BodyPlan {
  /** Whether a request without a body, or with one of another type, is refused. Otherwise `request.body` is undefined. */
  readonly isRequired: boolean;
  /** Whether bodies of multipart types are left unread, for an interceptor of the handler. */
  readonly leavesMultipart: boolean;
  /** Largest body in bytes. */
  readonly maxBytes: number;
  /** How much a JSON body may hold. */
  readonly limits: JsonLimits;
  /** Whether the bytes are kept as `request.rawBody`. */
  readonly keepsBytes: boolean;
  /** The media types of `@ApiConsumes`, as Express's `request.is` takes them; undefined for application/json alone. */
  readonly types: readonly string[] | undefined;
  /** The class of the whole body: with `types`, String gets the text and Buffer the bytes of every type. */
  readonly parameterType: unknown;
}

/** Reads and parses bodies, within the limit of each one and a common bound of memory. */
export class BodyReader {
  /** Bytes of the bodies of all requests that are not answered, except of bodies that came together with the header section. */
  private held = 0;

  constructor(
    private readonly inFlight: RequestsInFlight,
    private readonly turns: Turns,
  ) {}

  /**
   * The parsed body: JSON by the rules of `readJson`, an object for a form, text or bytes as the handler declares. A promise, unless the body
   * has arrived together with its header section. Undefined for a body that the plan does not require or leaves to a module.
   *
   * @throws ApiError UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, MISSING_BODY, MALFORMED_JSON, BODY_TOO_COMPLEX, VALIDATION_FAILED (text that is
   *   not UTF-8), or UNAVAILABLE (too many bodies or requests); the error of the HTTP parser
   * @throws RequestAbortedError when the connection closes before the whole body has arrived
   */
  read(request: Request, plan: BodyPlan): unknown {
    const { headers } = request;
    if (!announcesBody(request)) return noBody(plan);
    // The parser refused the body while the API key was looked up: waiting for the rest would never end.
    if (request.context.bodyError) throw request.context.bodyError;
    if (plan.leavesMultipart && /^multipart\//i.test(headers['content-type'] ?? '')) return this.leave(request);
    const fault = mediaTypeFault(request, plan);
    // A reader of multipart bodies reads no other, so the handler would do without.
    if (fault && (plan.isRequired || (plan.leavesMultipart && plan.types !== undefined))) throw fault;
    if (fault) return this.leave(request);
    if (Number(headers['content-length'] ?? 0) > plan.maxBytes) throw bodyTooLarge(plan);
    sendContinue(request);
    return request.complete ? this.parse(request, arrivedBytes(request, plan), plan) : this.readSoon(request, plan);
  }

  /** Leaves the body to code of modules, and lets a client that waits for `100 Continue` send it. */
  leave(request: Request): undefined {
    sendContinue(request);
  }

  private async readSoon(request: Request, plan: BodyPlan): Promise<unknown> {
    const { context } = request;
    // Node's parser goes on first: most bodies arrive in one packet with the header section.
    await Promise.resolve();
    if (hasJustArrived(request)) await new Promise((resolve) => setImmediate(resolve));
    if (context.bodyError) throw context.bodyError;
    if (request.complete) return this.parse(request, arrivedBytes(request, plan), plan);
    this.inFlight.release(context);
    advance(context, BODY.READ);
    let body: unknown;
    try {
      if (request.destroyed) throw aborted();
      body = await this.parse(request, await this.arrivingBytes(request, plan), plan);
    } catch (error) {
      throw context.bodyError ?? error;
    }
    const refusal = request.res?.closed ? undefined : this.inFlight.admit(request);
    if (refusal !== undefined) throw (context.refusal = refusal);
    return body;
  }

  /** As `parse`; a promise if a large body waits for its client's turn. */
  private parse(request: Request, bytes: Buffer, plan: BodyPlan): unknown {
    if (bytes.length <= LARGE_BODY_BYTES || this.turns.mayBegin()) return parse(request, bytes, plan);
    return this.turns.run(request.context.clientId, () => parse(request, bytes, plan));
  }

  private async arrivingBytes(request: Request, plan: BodyPlan): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let length = 0;
    const release = (): void => void (this.held -= length + chunks.length * CHUNK_COST);
    try {
      await new Promise<void>((resolve, reject) => {
        request.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          this.held += chunk.length + CHUNK_COST;
          if (length <= plan.maxBytes && this.held <= MAX_BYTES_OF_BODIES) return;
          // The rest is dropped.
          request.removeAllListeners('data');
          reject(length > plan.maxBytes ? bodyTooLarge(plan) : TOO_MANY_BODIES);
        });
        request.on('end', resolve);
        request.on('error', () => reject(aborted()));
        request.on('close', () => {
          if (!request.readableEnded) reject(aborted());
        });
      });
    } catch (error) {
      release();
      throw error;
    }
    // The handler keeps the body until then.
    if (request.res?.closed) release();
    else request.res?.once('close', release);
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
  }
}

function mediaTypeFault(request: Request, { types, parameterType }: BodyPlan): ApiError | undefined {
  const { 'content-type': contentType = '', 'content-encoding': coding = 'identity' } = request.headers;
  const { type, charsets } = contentType === JSON_TYPE ? PLAIN_JSON : mediaTypeOf(contentType);
  if (type === undefined) {
    return unsupported('Content-Type must be one media type, such as application/json; charset=utf-8.', types);
  }
  if (types !== undefined && !request.is([...types])) {
    return unsupported(`The body must be sent as Content-Type: ${types.join(' or ')}.`, types);
  }
  if (types === undefined && type !== JSON_TYPE) return unsupported(UNSUPPORTED_MEDIA_TYPE.message);
  const isText = types === undefined || parameterType !== Buffer;
  if (isText && !charsets.every((charset) => /^utf-?8$/i.test(charset))) {
    return unsupported('The body must be UTF-8.', types);
  }
  if (coding.toLowerCase() === 'identity') return undefined;
  return unsupported('The body must be sent without a Content-Encoding.', types, { 'Accept-Encoding': 'identity' });
}

const PLAIN_JSON = { type: JSON_TYPE, charsets: [] };

/** A parameter of a media type, or an empty one (RFC 9110, sections 8.3.1 and 5.6.6). */
const PARAMETER = /[ \t]*;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"((?:[^"\\]|\\.)*)"))?/y;

/** The type in lower case and its charsets; other parameters are ignored. The type is undefined if the field is malformed. */
function mediaTypeOf(field: string): { type: string | undefined; charsets: readonly string[] } {
  const [type = ''] = /^[^\s;]*/.exec(field) ?? [];
  const charsets: string[] = [];
  PARAMETER.lastIndex = type.length;
  let end = type.length;
  for (let found = PARAMETER.exec(field); found !== null; found = PARAMETER.exec(field)) {
    const [, name, token, quoted] = found;
    end = PARAMETER.lastIndex;
    if (name?.toLowerCase() === 'charset') charsets.push(token ?? (quoted as string).replace(/\\(.)/g, '$1'));
  }
  return { type: field.slice(end).trim() === '' ? type.toLowerCase() : undefined, charsets };
}

/** Names what the handler takes (RFC 9110, sections 12.5.3 and 15.5.16). */
function unsupported(message: string, types: readonly string[] = [JSON_TYPE], codings: HeaderFields = {}): ApiError {
  return new ApiError(UNSUPPORTED_MEDIA_TYPE, message, { Accept: types.join(', '), ...codings });
}

function arrivedBytes(request: Request, plan: BodyPlan): Buffer {
  if (request.destroyed) throw aborted();
  const bytes = (request.read() as Buffer | null) ?? Buffer.alloc(0);
  // Node 20 to 24 return all at once, Node 26 a piece.
  const pieces = [bytes];
  while (request.readableLength > 0) pieces.push(request.read() as Buffer);
  const whole = pieces.length === 1 ? bytes : Buffer.concat(pieces);
  if (whole.length > plan.maxBytes) throw bodyTooLarge(plan);
  return whole;
}

function parse(request: Request, bytes: Buffer, plan: BodyPlan): unknown {
  const { types, parameterType } = plan;
  if (plan.keepsBytes) request.rawBody = bytes;
  if (bytes.length === 0) return noBody(plan);
  if (types === undefined) return readJson(bytes, plan.limits);
  if (parameterType === String) return textOf(bytes);
  if (parameterType === Buffer) return bytes;
  if (request.is(['json', '+json'])) return readJson(bytes, plan.limits);
  if (!request.is('urlencoded')) return bytes;
  if (bytes.length > MAX_FORM_BYTES) throw bodyTooLarge({ maxBytes: MAX_FORM_BYTES });
  return parseForm(textOf(bytes));
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ApiError(VALIDATION_FAILED, 'the body must be UTF-8');
  return new TextDecoder().decode(bytes);
}

/**
 * Parses the form of `application/x-www-form-urlencoded`, also for queries, with any number of fields: those beyond Node's limit of 1000
 * would not be validated. Bytes that are not UTF-8 become unpaired surrogates, which are no valid text.
 */
export function parseForm(text: string | null): ParsedUrlQuery {
  return parseUrlEncoded(text ?? '', '&', '=', { maxKeys: 0, decodeURIComponent: decode });
}

/** Names that handlers declare, each by itself: V8 finds members by a text of the program faster than by a piece of a URL. */
export const FIELD_NAMES = new Map<string, string>();

function decode(text: string): string {
  return text.includes('%') ? decodePercent(text) : (FIELD_NAMES.get(text) ?? text);
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Node's U+FFFD for them would be stored in silence.
    return unescape(text).replaceAll('\ufffd', '\udcff');
  }
}

function noBody({ isRequired, types }: BodyPlan): undefined {
  const message = types && `The operation needs a body of ${types.join(' or ')} and none was sent.`;
  if (isRequired) throw new ApiError(MISSING_BODY, message);
}

function bodyTooLarge({ maxBytes }: Pick<BodyPlan, 'maxBytes'>): ApiError {
  return new ApiError(BODY_TOO_LARGE, `The body must not be larger than ${maxBytes} bytes.`);
}

function aborted(): RequestAbortedError {
  return new RequestAbortedError('The client closed the connection.');
}

/** Sends `100 Continue` to a client that waits for it with its body, which will be read (RFC 9110, section 10.1.1). */
function sendContinue({ context, res }: Request): void {
  if (context.bodyStage !== BODY.CONTINUE_AWAITED) return;
  advance(context, BODY.CONTINUED);
  res?.writeContinue();
}

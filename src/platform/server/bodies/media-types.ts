import express, { type Request, type RequestHandler } from 'express';
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../errors/api-error.js';
import { UNSUPPORTED_MEDIA_TYPE } from '../../errors/error-catalogue.js';

const JSON_TYPE = 'application/json';

/** What a handler takes as its body. Made once for each handler. */
export interface BodyPlan {
  /** Whether a request without a body, or with one of another type, is refused. Otherwise `request.body` is undefined. */
  readonly isRequired: boolean;
  /** Whether bodies of multipart types are left unread, for an interceptor of the handler. */
  readonly leavesMultipart: boolean;
  /** Largest body in bytes. */
  readonly maxBytes: number;
  /** Whether the bytes are kept as `request.rawBody`. */
  readonly keepsBytes: boolean;
  /** The media types of `@ApiConsumes`; undefined for application/json without a content coding. */
  readonly types: DeclaredTypes | undefined;
}

/** The media types that `@ApiConsumes` names, and Express's parsers for them. */
export class DeclaredTypes {
  private readonly text: RequestHandler;
  private readonly form: RequestHandler;
  private readonly bytes: RequestHandler;

  /**
   * @param names media types as Express's `request.is` takes them, such as `text/csv` or `image/*`
   * @param parameterType the class of the handler's `@Body()`: String gets the text and Buffer the bytes of every type
   */
  constructor(
    readonly names: readonly string[],
    private readonly parameterType: unknown,
    limit: number,
  ) {
    const options = { limit, type: () => true, verify: keepBytes };
    this.text = express.text(options);
    this.form = express.urlencoded({ ...options, extended: true });
    this.bytes = express.raw(options);
  }

  /** The parser of a body: forms become objects, text and XML become text, other types stay bytes. */
  parserOf(request: Request): RequestHandler {
    if (this.parameterType === Buffer) return this.bytes;
    if (this.parameterType === String) return this.text;
    if (request.is('urlencoded')) return this.form;
    return request.is(['text/*', '*/xml', '+xml']) ? this.text : this.bytes;
  }

  /** Whether the bytes are read as JSON: `application/json`, and types such as `application/merge-patch+json`. */
  isJson(request: Request): boolean {
    return (
      this.parserOf(request) === this.bytes && this.parameterType !== Buffer && Boolean(request.is(['json', '+json']))
    );
  }
}

function keepBytes(request: IncomingMessage & { rawBody?: Buffer }, _response: unknown, bytes: Buffer): void {
  request.rawBody = bytes;
}

/** The error of a body that a handler does not take: UNSUPPORTED_MEDIA_TYPE. */
export function mediaTypeFault(request: Request, { types }: BodyPlan): ApiError | undefined {
  const { headers } = request;
  const contentType = headers['content-type'] ?? '';
  if (types !== undefined) {
    return request.is([...types.names])
      ? undefined
      : unsupportedMediaType(`The body must be sent as Content-Type: ${types.names.join(' or ')}.`, types);
  }
  if (contentType !== JSON_TYPE) {
    const [mediaType, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
    if (mediaType !== JSON_TYPE) return unsupportedMediaType(UNSUPPORTED_MEDIA_TYPE.message);
    if (!parameters.every((parameter) => parameter === '' || /^charset="?utf-8"?$/.test(parameter))) {
      return unsupportedMediaType('The body must be UTF-8; application/json takes no other charset or parameter.');
    }
  }
  const coding = headers['content-encoding'];
  return coding === undefined || coding.toLowerCase() === 'identity'
    ? undefined
    : unsupportedMediaType('The body must be sent without a Content-Encoding.');
}

/** Names the media types that the handler takes in the field `Accept` (RFC 9110, section 15.5.16). */
export function unsupportedMediaType(message: string, types?: DeclaredTypes): ApiError {
  return new ApiError(UNSUPPORTED_MEDIA_TYPE, message, { Accept: types?.names.join(', ') ?? JSON_TYPE });
}

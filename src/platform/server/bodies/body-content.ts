import { parse as parseForm } from 'qs';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type InputType, type ZlibOptions } from 'node:zlib';
import { ApiError } from '../../errors/api-error.js';
import { BAD_REQUEST, BODY_TOO_LARGE } from '../../errors/error-catalogue.js';
import { readJson, readMembers } from '../../json/reader/json-reader.js';
import { decodeUtf8 } from '../../json/text/utf8.js';
import type { BodyPlan } from '../requests/body-plan.js';
import { MAX_FORM_DEPTH, MAX_FORM_FIELDS } from '../requests/server-limits.js';

type Decoder = (bytes: InputType, options: ZlibOptions) => Promise<Buffer>;

const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
};

/** The supported content codings of bodies. */
export const CONTENT_CODINGS: readonly string[] = Object.keys(DECODERS);

/** `application/json`, and types with the suffix `+json`, such as `application/merge-patch+json`. */
const JSON_TYPE = /^application\/json$|\+json$/;
const FORM_TYPE = 'application/x-www-form-urlencoded';
const TEXT_TYPE = /^text\/|[/+]xml$/;

/** Whether bodies of a media type are decoded to text, so that their charset matters. */
export function isDecoded(mediaType: string, form: BodyPlan['form']): boolean {
  if (form !== 'value') return form === 'text';
  return mediaType === FORM_TYPE || JSON_TYPE.test(mediaType) || TEXT_TYPE.test(mediaType);
}

/**
 * Undoes a content coding.
 *
 * @throws ApiError BODY_TOO_LARGE when the content is larger than the limit, BAD_REQUEST when it is not of this coding
 */
export async function undoCoding(bytes: Buffer, coding: string, maxBytes: number): Promise<Buffer> {
  try {
    return await (DECODERS[coding] as Decoder)(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? bodyTooLarge(maxBytes)
      : new ApiError(BAD_REQUEST, `The body is not valid ${coding}.`);
  }
}

export function bodyTooLarge(maxBytes: number): ApiError {
  return new ApiError(BODY_TOO_LARGE, `The body must not be larger than ${maxBytes} bytes.`);
}

/**
 * Converts the bytes of a body to the value for the handler: JSON by the rules of `readMembers` or `readJson`; a form as
 * an object, in which names such as `a[b]` and `a[]` are nested; text and XML as text; other types as bytes.
 *
 * @throws ApiError MALFORMED_JSON, or BAD_REQUEST for a text that is not UTF-8 and a form beyond its limits
 */
export function contentOf(bytes: Buffer, mediaType: string, plan: BodyPlan): unknown {
  const { form } = plan;
  if (form === 'bytes') return bytes;
  if (form === 'text') return textOf(bytes);
  if (JSON_TYPE.test(mediaType)) return jsonOf(bytes, plan);
  if (mediaType === FORM_TYPE) return fieldsOf(textOf(bytes));
  return TEXT_TYPE.test(mediaType) ? textOf(bytes) : bytes;
}

/** The value of a JSON text; only the members that the plan names, if it names any. */
export function jsonOf(bytes: Buffer, { members, needsAllDigits }: BodyPlan): unknown {
  return members ? readMembers(bytes, members, needsAllDigits) : readJson(bytes, needsAllDigits);
}

function textOf(bytes: Buffer): string {
  return decodeUtf8(bytes, () => new ApiError(BAD_REQUEST, 'The body is not UTF-8.'));
}

/** Parses a form as `express.urlencoded({ extended: true })` does, which stock Nest uses. */
function fieldsOf(text: string): unknown {
  try {
    return parseForm(text, {
      allowPrototypes: true,
      arrayLimit: MAX_FORM_FIELDS,
      depth: MAX_FORM_DEPTH,
      strictDepth: true,
      parameterLimit: MAX_FORM_FIELDS,
      throwOnLimitExceeded: true,
    });
  } catch {
    const limits = `${MAX_FORM_FIELDS} fields and ${MAX_FORM_DEPTH} levels`;
    throw new ApiError(BAD_REQUEST, `The form must not have more than ${limits}.`);
  }
}

import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../errors/api-error.js';
import { UNSUPPORTED_MEDIA_TYPE } from '../../errors/error-catalogue.js';
import type { BodyPlan, BodyTypes } from '../requests/body-plan.js';
import { CONTENT_CODINGS, isDecoded } from './body-content.js';

/** Whether the body has another media type than the handler's: application/json, unless the plan names other types. */
export function isOfOtherType({ headers }: IncomingMessage, { types }: Pick<BodyPlan, 'types'>): boolean {
  const mediaType = mediaTypeOf(headers['content-type']);
  return types ? !types.pattern.test(mediaType) : mediaType !== 'application/json';
}

/** The media type of a body without its parameters, in lower case; empty without a Content-Type. */
export function mediaTypeOf(contentType = ''): string {
  return contentType.split(';', 1).join().trim().toLowerCase();
}

/** @throws ApiError UNSUPPORTED_MEDIA_TYPE unless the body is JSON in UTF-8 without a content coding */
export function requireJson(contentType: string | undefined, contentEncoding: string | undefined): void {
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

/**
 * @throws ApiError UNSUPPORTED_MEDIA_TYPE unless the handler takes the media type, its text is UTF-8, and the platform can
 *   undo the content coding
 * @throws Error when a reader of the module, such as multer, should have read the body, but none is bound
 */
export function requireType(
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
export function codingOf(contentEncoding: string | undefined): string | undefined {
  const coding = contentEncoding?.trim().toLowerCase();
  return coding === 'identity' ? undefined : coding;
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

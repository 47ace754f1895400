/** The header field of the request (draft-ietf-httpapi-idempotency-key-header-07). */
export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';

/** Longest value of the field: a quoted key of 255 characters, each of them escaped. */
export const MAX_FIELD_LENGTH = 2 + 2 * 255;

/**
 * The pattern of the field: a string of structured fields (RFC 9651, section 3.3.3), or a bare key. A bare key may contain
 * any printable ASCII, but not begin with a space or a quote.
 */
export const KEY_PATTERN = String.raw`^(?:([!#-~][ -~]{0,254})|"((?:[ !#-\[\]-~]|\\["\\]){1,255})")$`;

/** The header field of the request (draft-ietf-httpapi-idempotency-key-header-07). */
export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';

/** The header field of a repeated answer. */
export const IDEMPOTENT_REPLAYED_HEADER = 'Idempotent-Replayed';

/** Longest value of the field: a quoted key of 255 characters, each of them escaped. */
export const MAX_FIELD_LENGTH = 2 + 2 * 255;

/**
 * The pattern of the field: a string of structured fields (RFC 9651, section 3.3.3), or a bare key. A bare key may contain
 * any printable ASCII, but not begin with a space or a quote.
 */
export const KEY_PATTERN = String.raw`^(?:([!#-~][ -~]{0,254})|"((?:[ !#-\[\]-~]|\\["\\]){1,255})")$`;

const GRAMMAR = new RegExp(KEY_PATTERN);

/** The key in a value of the field, quoted or bare; undefined for an invalid value. */
export function readKey(value: string): string | undefined {
  const [, bare, quoted] = GRAMMAR.exec(value) ?? [];
  return bare ?? quoted?.replace(/\\(.)/g, '$1');
}

/** The idempotency key of a request, with its client and operation. */
export class IdempotencyKey {
  /** @internal */
  constructor(
    /** The client of the request's API key. Keys of different clients are independent. */
    readonly clientId: bigint,
    /** Method and route of the request, such as `POST /v1/orders`. */
    readonly operation: string,
    /** 1 to 255 characters of printable ASCII. */
    readonly value: string,
    /** Marks the answer as repeated. */
    readonly markReplayed: () => void,
  ) {}
}

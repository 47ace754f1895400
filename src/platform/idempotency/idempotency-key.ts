/** The header field of the request (draft-ietf-httpapi-idempotency-key-header-07). */
export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';

/** The header field of an answer that is given again. */
export const IDEMPOTENT_REPLAYED_HEADER = 'Idempotent-Replayed';

/** Most characters of the field: a quoted key of 255, each of them escaped. */
export const MAX_FIELD_LENGTH = 2 + 2 * 255;

/**
 * The values of the field: a string of structured fields (RFC 9651, section 3.3.3), or the same bare. A bare key may hold
 * any printable ASCII but a quote at its beginning.
 */
export const KEY_PATTERN = String.raw`^(?:([!#-~][ -~]{0,254})|"((?:[ !#-\[\]-~]|\\["\\]){1,255})")$`;

const GRAMMAR = new RegExp(KEY_PATTERN);

/** The key that a value of the field names, quoted or bare; undefined when it names none. */
export function readKey(value: string): string | undefined {
  const [, bare, quoted] = GRAMMAR.exec(value) ?? [];
  return bare ?? quoted?.replace(/\\(.)/g, '$1');
}

/** The key under which a client sent a request: whoever runs the request once needs it. */
export class IdempotencyKey {
  /** @internal */
  constructor(
    /** The client that the API key belongs to: every client has keys of its own. */
    readonly clientId: bigint,
    /** Method and route of the request, such as `POST /v1/orders`. */
    readonly operation: string,
    /** The operationId, which was the operation in fingerprints of version 1. */
    readonly handler: string,
    /** 1 to 255 characters of printable ASCII. */
    readonly value: string,
    /** Says in the answer that it is given again. */
    readonly markReplayed: () => void,
  ) {}
}

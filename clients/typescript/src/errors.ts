/**
 * Codes of failures that the client itself found. Every other code comes from the service; its `/docs`
 * lists those of each operation.
 *
 * - `invalid_argument`: an argument cannot be sent; no request was made.
 * - `network_error`: no response, or one cut short. The request may have been carried out.
 * - `timeout`: no complete response in time. The request may have been carried out.
 * - `aborted`: the caller's AbortSignal ended the call; `cause` is its reason. The request may have been carried out.
 * - `unexpected_response`: a response that the service does not give, such as the page of a proxy, or a list whose next
 *   page is one that was read before.
 * - `origin_not_allowed`: the browser gives no response to this page: the service does not allow its origin (CORS), or a
 *   proxy responded without the header fields of CORS. Then the request may have been carried out.
 */
export type ClientErrorCode =
  'invalid_argument' | 'network_error' | 'timeout' | 'aborted' | 'unexpected_response' | 'origin_not_allowed';

interface Details {
  /** A code of the service, or one of the client. */
  code: string;
  message: string;
  status?: number | undefined;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Every failure of the client, whatever its cause. */
export class PetStoreError extends Error {
  override readonly name = 'PetStoreError';
  /** For programs: a code of the service, such as `pet_not_found`, or a {@link ClientErrorCode}. */
  readonly code: string;
  /** Status of the response; undefined when there was none. */
  readonly status: number | undefined;
  /**
   * Identifies the last attempt in the log of the service. The client sends it, so it is also known without a response.
   * Undefined with `invalid_argument`: nothing was sent.
   */
  readonly requestId: string | undefined;
  /** How long the service asked to wait before another attempt, in ms. */
  readonly retryAfterMs: number | undefined;

  constructor({ code, message, status, requestId, retryAfterMs, cause }: Details) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Why something failed. Node puts the code of a network error into the cause, browsers give only a message. */
export function reasonOf(error: unknown): string {
  try {
    const { cause, message } = Object(error) as { cause?: { code?: unknown }; message?: unknown };
    return String(cause?.code ?? message ?? error);
  } catch {
    // Anything can be thrown, also what cannot be read or has no text.
    return 'unknown reason';
  }
}

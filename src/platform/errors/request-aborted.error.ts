/**
 * The client closed the connection before its request was complete. It gets no answer, and nothing is logged as an
 * error.
 */
export class RequestAbortedError extends Error {
  override readonly name = 'RequestAbortedError';
}

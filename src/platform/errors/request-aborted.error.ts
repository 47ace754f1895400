/**
 * The client closed the connection before its request was complete. No answer is sent, and no error is logged.
 */
export class RequestAbortedError extends Error {
  override readonly name = 'RequestAbortedError';
}

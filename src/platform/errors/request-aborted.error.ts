/** The client went away before its request was complete: nobody is left to answer, and nothing is wrong. */
export class RequestAbortedError extends Error {
  override readonly name = 'RequestAbortedError';
}

/** A fault that the operator can correct. Its message is printed as one line on standard error; the exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

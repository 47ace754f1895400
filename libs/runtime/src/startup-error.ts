/**
 * A fault that the operator can fix and that stops the start or the command: a wrong setting, a database that does not
 * respond, a locked directory. The process prints the message without a stack trace and exits with code 1.
 *
 * The message must be one line, name the fault and the remedy, and contain no secret.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

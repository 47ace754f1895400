/**
 * A reason not to start (or not to run a command) that the operator can mend: a wrong setting, a database that does not
 * answer, a locked directory. The message is one line, says what is wrong and what to do, and carries no secret; it is
 * printed without a stack trace and the process exits with code 1.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

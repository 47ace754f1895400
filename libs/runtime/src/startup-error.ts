/**
 * A fault that the operator can fix and that stops the start or the command. The process prints the message without a stack trace and
 * exits with code 1. The message must be one line, name the fault and the remedy, and contain no secret.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

/** The error of a start for which a dependency differs from the one that is known, so that something could be open to everybody. */
export function misfit(dependency: string, difference: string): StartupError {
  return new StartupError(
    `This service does not fit the installed version of a dependency: ${dependency}: ${difference}. ` +
      'Install the version in package-lock.json of its release.',
  );
}

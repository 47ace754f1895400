import { ApiKeyRequestError } from '../platform/api-keys/api-key-format.js';
import { databaseFault, rootFault } from '../platform/database/connections/connection-errors.js';
import { StartupError } from '../platform/errors/startup-error.js';

/** The text of an error that ends a start or a command: one line if the operator can fix it, else the stack. */
export function failureText(error: unknown): string {
  const isOperators = error instanceof StartupError || error instanceof ApiKeyRequestError;
  const fault = isOperators ? error : (openFilesFault(error) ?? databaseFault(error));
  if (fault === undefined) return String((error as Error | undefined)?.stack ?? error);
  return `petstore: ${fault.message}`;
}

function openFilesFault(error: unknown): StartupError | undefined {
  const { code } = (rootFault(error) ?? {}) as { code?: unknown };
  if (code !== 'EMFILE' && code !== 'ENFILE') return undefined;
  return new StartupError('The limit of open files is too small. Raise it (ulimit -n 20000).');
}

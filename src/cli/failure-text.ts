import { ApiKeyRequestError } from '../platform/api-keys/api-key-format.js';
import { databaseFault, rootFault } from '../platform/database/connections/connection-errors.js';
import { StartupError } from '../platform/errors/startup-error.js';

/** The text of an error that ends a start or a command: one line if the operator can fix it, else the stack. */
export function failureText(error: unknown): string {
  const isOperators = error instanceof StartupError || error instanceof ApiKeyRequestError;
  if (!isOperators && /^E[MN]FILE$/.test(String(rootFault(error)?.code))) {
    return 'petstore: The limit of open files is too small. Raise it (ulimit -n 20000).';
  }
  const fault = isOperators ? error : databaseFault(error);
  return fault === undefined ? String((error as Error | undefined)?.stack ?? error) : `petstore: ${fault.message}`;
}

import { ApiKeyRequestError } from '#access';
import { databaseFault } from '#postgres';
import { printable, printableLines, StartupError } from '#runtime';
import { sentence } from '#commands';

/** The text of an error that ends a start or a command: one line if the operator can fix it, else the stack. */
export function failureText(error: unknown, product: string): string {
  const isOperators = error instanceof StartupError || error instanceof ApiKeyRequestError;
  const fault = isOperators ? error : databaseFault(error);
  if (fault !== undefined) return `${product}: ${sentence(printable(fault.message))}`;
  return printableLines(String((error as Error | undefined)?.stack ?? error));
}

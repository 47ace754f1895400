import { ApiKeyRequestError } from '#access';
import { databaseFault } from '#postgres';
import { printable, printableLines, StartupError } from '#runtime';
import { sentence } from '#commands';

const LEFT_OUT_TYPES =
  'Or the compiler has left out the types of constructors: tsc, nest build and SWC (decoratorMetadata) keep them, tsx and esbuild do not.';

/** The text of an error that ends a start or a command: one line if the operator can fix it, else the stack. */
export function failureText(error: unknown, product: string): string {
  const isOperators = error instanceof StartupError || error instanceof ApiKeyRequestError;
  const fault = isOperators ? error : databaseFault(error);
  if (fault !== undefined) return `${product}: ${sentence(printable(fault.message))}`;
  const text = printableLines(String((error as Error | undefined)?.stack ?? error));
  // Nest suspects the imports only.
  return text.includes('appears to be undefined at runtime') ? `${text}\n${product}: ${LEFT_OUT_TYPES}` : text;
}

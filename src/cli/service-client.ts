import { CommanderError } from 'commander';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connectToOwner } from '#embedded-postgres';
import { StartupError } from '#errors';
import type { CommandContext } from './context.js';
import { printableLines } from './terminal.js';

/** What the service reports at the end of a command. */
export interface ServiceEnd {
  readonly exitCode: number;
  /** Text for standard error, which a terminal may show. */
  readonly messages: string;
}

/** The trailer field with the `ServiceEnd`, as percent-encoded JSON. */
export const END_FIELD = 'petstore-end';

/** The first words of the commands that the service runs while it has the embedded database; `export` asks it itself. */
const IN_SERVICE = new Set<string | undefined>(['deprecations', 'keys', 'seed']);

/** Returns when this process must run the command. Throws CommanderError with the exit code when the service has run it. */
export async function runInsteadInService(context: CommandContext, words: readonly string[]): Promise<void> {
  if (!IN_SERVICE.has(words[0])) return;
  const { readConfig } = await import('../settings.js');
  const { databaseUrl, dataDir } = readConfig();
  if (databaseUrl !== undefined) return;
  const decoder = new TextDecoder();
  const print = (bytes: Buffer): void => context.print(printableLines(decoder.decode(bytes, { stream: true })));
  const end = await runInService(dataDir, words, print);
  if (end === undefined) return;
  context.tell(end.messages);
  throw new CommanderError(end.exitCode, 'petstore.service', 'The service ran the command.');
}

/**
 * Lets the service that runs on DATA_DIR run a command, by HTTP on the socket that locks the directory.
 *
 * @param write takes the output, and is awaited
 * @returns undefined when no service runs there
 * @throws StartupError when the service ends before the command, or belongs to another user; any error of `write`
 */
export async function runInService(
  dataDir: string,
  words: readonly string[],
  write: (bytes: Buffer) => void | Promise<void>,
): Promise<ServiceEnd | undefined> {
  const socket = await connectToOwner(dataDir);
  if (socket === undefined) return undefined;
  const path = `/${encodeURIComponent(JSON.stringify(words))}`;
  const sent = request({ createConnection: () => socket, path }).end();
  const answer = once(sent, 'response') as Promise<IncomingMessage[]>;
  // A process that holds the directory and serves no commands, such as a start or another command, hangs up.
  const [response] = await answer.catch(() => []);
  if (response === undefined) return undefined;
  try {
    for await (const bytes of response) await write(bytes as Buffer);
  } catch (error) {
    throw response.errored === error ? new StartupError('The service ended before the command.') : error;
  }
  const end = JSON.parse(decodeURIComponent(response.trailers[END_FIELD] ?? '')) as ServiceEnd;
  return { ...end, messages: printableLines(end.messages) };
}

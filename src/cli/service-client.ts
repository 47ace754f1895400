import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connectToOwner } from '#embedded-postgres';
import { StartupError } from '#errors';
import { printableLines } from './terminal.js';

/** What the service tells at the end of a command. */
export interface ServiceEnd {
  readonly exitCode: number;
  /** Text for standard error, which a terminal may show. */
  readonly messages: string;
}

/** The trailer field with the `ServiceEnd`, as percent-encoded JSON. */
export const END_FIELD = 'petstore-end';

/**
 * Lets the service that runs on DATA_DIR run a command: the embedded database belongs to one process. It is a request of
 * HTTP on the socket that locks the directory: the path is the command, the body its output.
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

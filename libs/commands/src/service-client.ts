import { type Command, CommanderError } from 'commander';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '#runtime';
import { loadEnvironmentFile as loadFile, optional, readSettings } from '#settings';
import { type CommandContext, loadEnvironmentFile } from '#definition';

/** What the service reports at the end of a command. */
export interface ServiceEnd {
  readonly exitCode: number;
  /** Text for standard error. */
  readonly messages: string;
}

/** The trailer field with the `ServiceEnd`, as percent-encoded JSON. */
export const END_FIELD = 'petstore-end';

/** Largest header section in bytes, of the request and of its answer: a command line of 2 MiB, the limit of Linux, percent-encoded. */
export const MAX_HEADER_BYTES = 32 * 1_024 * 1_024;

/** Whether there is a server. Its URI is read where it is needed. */
const IS_SET = { ...optional('DATABASE_URL', '', '', (uri) => uri), neverEmpty: true as const };

/** The commands that need no database. */
const WITHOUT_DATABASE = ['openapi', 'settings'];

/**
 * Returns when this process must run the command, with the variables of `.env` loaded. Throws CommanderError with the exit code when
 * the service has run it; this process has then loaded little.
 *
 * @throws StartupError when the command would make a database and was not told to
 */
export async function runInsteadInService(
  context: CommandContext,
  words: readonly string[],
  command: Command,
): Promise<void> {
  const { application } = context;
  const added = [application, ...application.parts].flatMap(({ commands = [] }) => commands);
  if (['keys', ...added.flatMap(({ inService = [] }) => inService)].includes(words[0] as string))
    await askService(context, words);
  await loadEnvironmentFile(application);
  if (WITHOUT_DATABASE.includes(command.name())) return;
  const { databaseUrl, dataDir } = await context.config();
  if (databaseUrl !== undefined) return;
  const { hasDatabase } = await import('#embedded-postgres');
  if (await hasDatabase(dataDir)) return;
  const directory = resolve(dataDir);
  const { newDatabase, dryRun } = command.opts<{ newDatabase?: boolean; dryRun?: boolean }>();
  if (newDatabase || (command.name() === 'migrate' && !dryRun)) {
    context.tell(`Making a new database in DATA_DIR '${directory}'.\n`);
    return;
  }
  const hasOption = command.options.some(({ long }) => long === '--new-database');
  throw new StartupError(
    `DATA_DIR '${directory}' has no database, and none was made. Run this in the directory of the service, or set DATA_DIR ` +
      `or DATABASE_URL as there. ${hasOption ? '--new-database' : `'${application.product.command} migrate'`} makes a new one.`,
  );
}

/** Throws CommanderError with the exit code when a service has run the command. */
async function askService(context: CommandContext, words: readonly string[]): Promise<void> {
  loadFile();
  const { EMBEDDED_SETTINGS } = await import('#embedded-postgres');
  const { databaseUrl, dataDir } = readSettings({ ...EMBEDDED_SETTINGS, databaseUrl: IS_SET });
  if (databaseUrl !== undefined) return;
  const output: Buffer[] = [];
  const end = await runInService(dataDir, words, output);
  if (end === undefined) return;
  context.print(Buffer.concat(output).toString());
  context.tell(end.messages);
  throw new CommanderError(end.exitCode, 'petstore.service', 'The service ran the command.');
}

/**
 * Lets the service that runs on DATA_DIR run a command, by HTTP on the socket that locks the directory. Waits up to
 * LOCK_WAIT_MS for a process that holds the directory and serves no commands: a service that starts, or another command.
 *
 * @param output gets the pieces of the command's output
 * @returns undefined when no service runs there
 * @throws StartupError when the service ends before the command, or belongs to another user
 */
async function runInService(
  dataDir: string,
  words: readonly string[],
  output: Buffer[],
): Promise<ServiceEnd | undefined> {
  const { connectToOwner, LOCK_RETRY_MS, LOCK_WAIT_MS } = await import('#embedded-postgres');
  const path = `/${encodeURIComponent(JSON.stringify({ words }))}`;
  for (const latest = performance.now() + LOCK_WAIT_MS; performance.now() <= latest; await sleep(LOCK_RETRY_MS)) {
    const socket = await connectToOwner(dataDir);
    if (socket === undefined) return undefined;
    // A process that serves no commands hangs up, maybe already, so that no event will say so.
    if (socket.destroyed || socket.readableEnded) continue;
    const sent = request({ createConnection: () => socket, path, maxHeaderSize: MAX_HEADER_BYTES });
    // An error after the beginning of the response is thrown where the response is read.
    sent.on('error', () => undefined).end();
    const [response] = await (once(sent, 'response') as Promise<IncomingMessage[]>).catch(() => []);
    if (response !== undefined) return readAnswer(response, output);
  }
  return undefined;
}

async function readAnswer(response: IncomingMessage, output: Buffer[]): Promise<ServiceEnd> {
  try {
    for await (const piece of response as AsyncIterable<Buffer>) output.push(piece);
  } catch {
    throw new StartupError('The service ended before the command.');
  }
  const end = response.trailers[END_FIELD];
  if (end === undefined) throw new StartupError('The service did not run the command.');
  return JSON.parse(decodeURIComponent(end)) as ServiceEnd;
}

import type { INestApplication } from '@nestjs/common';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Config } from '../../config.js';
import { StartupError } from '../../platform/errors/startup-error.js';
import { CommandError } from '../command/command-error.js';
import { nobodyWaits, RemoteFile, waitFor } from './remote-file.js';
import { ServiceContext } from './service-context.js';
import { commandSocket, COMMANDS_DIRECTORY, type Message, SERVED } from './service-protocol.js';
import type { Terminal } from '../command/terminal.js';

/** Largest number of commands that the service runs at a time. */
const MAX_COMMANDS = 4;

/** Longest command line in characters, and longest time in ms for it to arrive. */
const MAX_LINE_LENGTH = 65_536;
const LINE_TIMEOUT_MS = 5_000;

/** Longest run in ms of a command that reports progress. Statement time limits bound the other commands. */
const COMMAND_TIMEOUT_MS = 600_000;

/** Longest time in ms that a client process may take to read the last lines. */
const FLUSH_TIMEOUT_MS = 1_000;

/** Runs commands for other processes of the same user, until `close`. */
export class ServiceCommands {
  private readonly server: Server;
  private readonly running = new Set<Promise<void>>();
  private isClosing = false;
  /** Ends the wait for client processes that do not read. */
  private readonly waiting = new AbortController();

  private constructor(
    private readonly app: INestApplication,
    private readonly directory: string,
  ) {
    this.server = createServer((socket) => this.accept(socket));
  }

  /**
   * Listens on a socket in DATA_DIR. This process has locked the directory, so a socket found there is left over from a
   * dead process and is removed.
   *
   * @throws StartupError when the socket cannot be made
   */
  static async listen(app: INestApplication, { dataDir }: Config): Promise<ServiceCommands> {
    const directory = join(dataDir, COMMANDS_DIRECTORY);
    const commands = new ServiceCommands(app, directory);
    const path = commandSocket(dataDir);
    try {
      await rm(directory, { recursive: true, force: true });
      await mkdir(directory, { mode: 0o700 });
      await new Promise<void>((done, fail) => {
        commands.server.once('error', fail);
        commands.server.listen({ path }, done);
      });
    } catch (error) {
      throw new StartupError(`The socket for commands in DATA_DIR cannot be made: ${(error as Error).message}.`, {
        cause: error,
      });
    }
    return commands;
  }

  /** Stops listening, ends running commands after their current statement, and removes the socket. */
  async close(): Promise<void> {
    this.isClosing = true;
    const timer = setTimeout(() => this.waiting.abort(), FLUSH_TIMEOUT_MS);
    const closed = new Promise((done) => this.server.close(done));
    // Before DATA_DIR is unlocked: after that, the directory of this name may belong to the next process.
    await rmdir(this.directory).catch(() => undefined);
    await Promise.all(this.running);
    clearTimeout(timer);
    await closed;
  }

  private accept(socket: Socket): void {
    // Errors need no handling here: sending the next message notices a closed connection.
    socket.on('error', () => undefined);
    const run = this.serve(socket).finally(() => {
      socket.end();
      setTimeout(() => socket.destroy(), FLUSH_TIMEOUT_MS).unref();
      this.running.delete(run);
    });
    this.running.add(run);
  }

  private async serve(socket: Socket): Promise<void> {
    const send = (message: Message): void => {
      if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
    };
    if (this.running.size >= MAX_COMMANDS) {
      send({ tell: `petstore: The service runs ${MAX_COMMANDS} commands already. Try again when one has ended.\n` });
      send({ exit: 1 });
      return;
    }
    const words = await commandLine(socket);
    if (words === undefined || !SERVED.includes(words[0] ?? '')) return;
    const context = this.contextFor(socket, send);
    const { createProgram, runCommand } = await import('../program.js');
    send({ exit: await runCommand(createProgram(context), context, words) });
  }

  private contextFor(socket: Socket, send: (message: Message) => void): ServiceContext {
    const tooLate = AbortSignal.timeout(COMMAND_TIMEOUT_MS);
    const end = AbortSignal.any([this.waiting.signal, tooLate]);
    const terminal: Terminal = {
      print: (print) => send({ print }),
      tell: (tell) => send({ tell }),
      progress: this.progressOf(socket, send, tooLate),
    };
    return new ServiceContext(this.app, terminal, async (path, overwrite) => {
      send({ create: { path, overwrite } });
      await waitFor(socket, 'data', end);
      if (!socket.readable) throw nobodyWaits();
      return new RemoteFile(socket, send, end);
    });
  }

  /** Reports progress. Stops the command when its client is gone, time is up, or the service stops. */
  private progressOf(socket: Socket, send: (message: Message) => void, tooLate: AbortSignal): Terminal['progress'] {
    return async (...progress) => {
      const [done, , unit] = progress;
      if (this.isClosing) throw new CommandError(`The service stops; it had come to ${done} ${unit}.`);
      if (!socket.readable) throw nobodyWaits();
      if (tooLate.aborted) {
        const minutes = COMMAND_TIMEOUT_MS / 60_000;
        throw new CommandError(
          `A command beside the service takes at most ${minutes} minutes; this one came to ${done} ${unit}. Stop the service for more.`,
        );
      }
      send({ progress });
      // The engine answers in microtasks. Without this pause, requests would wait until the command ends.
      await setImmediate();
    };
  }
}

/** Reads the words of a command. Undefined if they do not arrive in time, are too long, or are no list of texts. */
function commandLine(socket: Socket): Promise<string[] | undefined> {
  return new Promise((resolve) => {
    let line = '';
    const done = (words?: string[]): void => {
      clearTimeout(timer);
      // Drops further data. Reading must go on, because only then is the end of the connection noticed.
      socket.removeAllListeners('data').resume();
      resolve(words);
    };
    const timer = setTimeout(done, LINE_TIMEOUT_MS);
    socket.once('close', () => done());
    socket.setEncoding('utf8').on('data', (text: string) => {
      line += text;
      if (line.includes('\n')) done(parsedWords(line.slice(0, line.indexOf('\n'))));
      else if (line.length > MAX_LINE_LENGTH) done();
    });
  });
}

function parsedWords(line: string): string[] | undefined {
  try {
    const words: unknown = JSON.parse(line);
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined;
  } catch {
    return undefined;
  }
}

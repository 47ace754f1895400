import type { INestApplication } from '@nestjs/common';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '../platform/api-keys/api-keys.service.js';
import { Application } from '../platform/application.js';
import type { OwningDataSource } from '../platform/database/owning-data-source.js';
import { KeyUsageRepository } from '../platform/key-usage/key-usage.repository.js';
import { OpenApiDocument } from '../platform/openapi/openapi-document.js';
import type { CommandContext } from './context.js';
import { asCommandError } from './keys.module.js';
import { CommandError } from './options.js';
import type { ServiceEnd } from './service-client.js';

/** The first words of the commands that the service runs. */
const SERVED = ['deprecations', 'export', 'keys', 'seed'];

/** Largest number of commands that the service runs at a time. */
const MAX_COMMANDS = 4;

/** Longest command line in characters. */
const MAX_LINE_LENGTH = 65_536;

/** Longest time in ms for a command line to arrive, for a command, and for its last output to be read. */
const LINE_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 600_000;
const FLUSH_TIMEOUT_MS = 1_000;

/** Runs commands for `runInService` of other processes of the same user, on the embedded database, until `close`. */
export class ServiceCommands {
  private readonly engine: OwningDataSource['engine'];
  private readonly running = new Map<Socket, Promise<void>>();
  private isClosing = false;

  constructor(private readonly app: INestApplication) {
    this.engine = app.get<OwningDataSource>(DataSource).engine;
    this.engine?.serve((socket) => this.accept(socket));
  }

  /** Refuses further commands, and ends running ones after their current statement. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.engine?.serve(undefined);
    // A client that does not read must not delay the end.
    const timer = setTimeout(() => this.running.forEach((_, socket) => socket.destroy()), FLUSH_TIMEOUT_MS);
    await Promise.all(this.running.values());
    clearTimeout(timer);
  }

  private accept(socket: Socket): void {
    // Errors need no handling here: writing notices a closed connection.
    socket.on('error', () => undefined);
    socket.write('\n');
    const limit = setTimeout(() => socket.destroy(), COMMAND_TIMEOUT_MS).unref();
    const run = this.serve(socket).finally(() => {
      clearTimeout(limit);
      socket.end();
      setTimeout(() => socket.destroy(), FLUSH_TIMEOUT_MS).unref();
      this.running.delete(socket);
    });
    this.running.set(socket, run);
  }

  private async serve(socket: Socket): Promise<void> {
    let messages = '';
    const end = (exitCode: number): unknown =>
      socket.writable && socket.write(`\0${JSON.stringify({ exitCode, messages } satisfies ServiceEnd)}`);
    if (this.running.size >= MAX_COMMANDS) {
      messages = `petstore: The service runs ${MAX_COMMANDS} commands already. Try again when one has ended.\n`;
      end(1);
      return;
    }
    const words = await commandLine(socket);
    if (words === undefined || !SERVED.includes(words[0] ?? '')) return;
    const { createProgram, runCommand } = await import('./program.js');
    const context = this.contextFor(socket, (text) => (messages += text));
    end(await runCommand(createProgram(context), context, words));
  }

  private contextFor(socket: Socket, tell: (text: string) => void): CommandContext {
    const { app } = this;
    const onDatabase: CommandContext['withDatabase'] = (work) => work(app.get(DataSource));
    return {
      terminal: {
        print: (text) => void (socket.writable && socket.write(text)),
        tell,
        progress: (done, _total, unit) => this.pause(socket, done, unit),
      },
      application: app.get(Application),
      isService: true,
      exitCode: 0,
      withKeys: (work) => work(app.get(ApiKeysService), app.get(KeyUsageRepository)).catch(asCommandError),
      withDatabase: onDatabase,
      withCurrentDatabase: onDatabase,
      document: () => Promise.resolve(app.get(OpenApiDocument)),
    };
  }

  /** Lets requests and the reader of the output go on. Stops a command whose client is gone, and when the service stops. */
  private async pause(socket: Socket, done: number, unit: string): Promise<void> {
    if (this.isClosing) throw new CommandError(`The service stops; it had come to ${done} ${unit}.`);
    if (socket.writableNeedDrain && !socket.closed) await drained(socket);
    if (!socket.writable) throw new CommandError('Nobody waits for the result.');
    // The engine answers in microtasks. Without this pause, requests would wait until the command ends.
    await setImmediate();
  }
}

/** Waits until a client process has read, or is gone. */
function drained(socket: Socket): Promise<void> {
  return new Promise((done) => {
    const settle = (): void => {
      socket.off('drain', settle).off('close', settle);
      done();
    };
    socket.once('drain', settle).once('close', settle);
  });
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
      if (line.includes('\n')) done(wordsOf(line.slice(0, line.indexOf('\n'))));
      else if (line.length > MAX_LINE_LENGTH) done();
    });
  });
}

function wordsOf(line: string): string[] | undefined {
  try {
    const words: unknown = JSON.parse(line);
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined;
  } catch {
    return undefined;
  }
}

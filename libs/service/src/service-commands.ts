import type { INestApplication } from '@nestjs/common';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { StartupError } from '#runtime';
import { OpenApiDocument } from '#operations';
import type { ServiceDataSource } from '#postgres';
import { Config } from '#settings';
import type { CommandContext, CoreConfig, ServiceDefinition } from '#definition';
import { failureText } from './failure-text.js';
import { createProgram, END_FIELD, MAX_HEADER_BYTES, runCommand, type ServiceEnd } from '#commands';

/** Longest time in ms until the request has arrived, and for its last output to be read. */
const REQUEST_TIMEOUT_MS = 5_000;
const FLUSH_TIMEOUT_MS = 1_000;

/** Runs commands that other processes of the same user send, on the embedded database, until `close`. */
export class ServiceCommands {
  private readonly engine = this.app.get<ServiceDataSource>(DataSource).engine;
  private readonly running = new Set<Promise<void>>();
  private readonly stopping = new AbortController();

  constructor(
    private readonly app: INestApplication,
    private readonly definition: ServiceDefinition,
  ) {
    const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
      const run = this.run(request, response)
        .catch(() => void response.destroy())
        .finally(() => this.running.delete(run));
      this.running.add(run);
    });
    this.engine?.lock.serve((socket) => {
      socket.setTimeout(REQUEST_TIMEOUT_MS, () => socket.destroy());
      server.emit('connection', socket);
    });
  }

  /** Refuses further commands, and ends running ones after their current statement. */
  async close(): Promise<void> {
    this.engine?.lock.serve(undefined);
    this.stopping.abort();
    await Promise.all(this.running);
  }

  private async run(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.socket.setTimeout(0);
    const { words } = JSON.parse(decodeURIComponent((request.url ?? '').slice(1))) as { words: string[] };
    // Writing to a closed connection is no fault: `pause` notices it.
    response
      .on('error', () => undefined)
      .setHeader('Connection', 'close')
      .flushHeaders();
    const { app, definition } = this;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.stopping.signal]);
    let messages = '';
    const context: CommandContext = {
      print: (text) => void response.write(text),
      tell: (text) => (messages += text),
      pause: () => pause(response, signal),
      application: definition,
      exitCode: 0,
      config: () => Promise.resolve(app.get<CoreConfig>(Config)),
      with: (type, _, work) => work(app.get(type)),
      withDatabase: (_, work) => work(app.get(DataSource)),
      document: () => Promise.resolve(app.get(OpenApiDocument)),
    };
    const exitCode = await runCommand(
      () => createProgram(context),
      context,
      words,
      (...failure) => Promise.resolve(failureText(...failure)),
    );
    const end: ServiceEnd = { exitCode, messages };
    response.addTrailers({ [END_FIELD]: encodeURIComponent(JSON.stringify(end)) });
    response.end();
    await Promise.race([once(response, 'close'), sleep(FLUSH_TIMEOUT_MS)]);
    // A client that does not read must not delay the end of the service.
    response.destroy();
  }
}

/** Lets requests and the reader of the output go on. Stops a command whose client is gone, and when the service stops. */
async function pause(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (response.writableNeedDrain && !signal.aborted) {
    await once(response, 'drain', { signal }).catch(() => undefined);
  }
  if (signal.aborted) throw new StartupError('The service stopped in the middle of the command.');
  // The engine responds in microtasks. Without this pause, requests would wait until the command ends.
  await setImmediate();
}

import { NestFactory } from '@nestjs/core';
import cluster from 'node:cluster';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppModule } from './app.module.js';
import { APPLICATION_OPTIONS, setUpApplication } from './app.setup.js';
import { ProcessGroup } from './platform/process-group/process-group.js';
import { type Config, loadEnvironmentFile, readConfig } from './config.js';
import { StartKeys } from './platform/api-keys/start-keys.js';
import { StartupError } from './platform/errors/startup-error.js';
import { PlatformExpressAdapter } from './platform/server/express-adapter.js';

/**
 * Time in ms that the modules have to close when the last connection is closed: the database waits for its statements. With
 * the two seconds that the log may wait for its reader then, less than SHUTDOWN_MARGIN_MS of a group.
 */
const CLOSE_TIMEOUT_MS = 3_000;

async function main(): Promise<void> {
  loadEnvironmentFile();
  const config = readConfig();
  if (config.webConcurrency === 1 || cluster.isWorker) {
    await serve(config);
  } else {
    const group = new ProcessGroup(config, (port) => tell(welcome(config, port)));
    process.exit(
      await group.run().catch((error: unknown) => {
        throw listenError(error as NodeJS.ErrnoException, config);
      }),
    );
  }
}

async function serve(config: Config): Promise<void> {
  const app = await NestFactory.create(
    AppModule.forRoot(config),
    new PlatformExpressAdapter(config),
    APPLICATION_OPTIONS,
  );
  setUpApplication(app);
  await app.listen(config.port, config.host).catch((error: unknown) => {
    throw listenError(error as NodeJS.ErrnoException, config);
  });

  // Held back until here: of a start that fails, the one line of its cause is enough.
  app.flushLogs();

  let stopping = false;
  const stop = (): void => {
    stopping = true;
    const limit = config.shutdownDelayMs + config.shutdownTimeoutMs + CLOSE_TIMEOUT_MS;
    setTimeout(() => {
      tell(`petstore: The database did not close within ${limit} ms; the statements that it waits for are cut.`);
      process.exit(1);
    }, limit);
    app.close().then(() => process.exit(0), fail);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // The second signal, of a person who is out of patience, ends the process at once. In a group it is the first
      // process that decides: the others may get each signal twice, from it and from who signals all processes.
      if (stopping && cluster.isPrimary) process.exit(1);
      if (!stopping) stop();
    });
  }

  if (cluster.worker) {
    const { worker } = cluster;
    worker.on('disconnect', () => {
      // The first process has gone. node:cluster would end this one at once, with its requests.
      worker.exitedAfterDisconnect = true;
      if (!stopping) stop();
    });
  } else {
    const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
    tell(welcome(config, port, await app.get(StartKeys).createFirstKey()));
  }
}

/** What a person sees who has started the service: where it is, and with which key to try it. */
function welcome(config: Config, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const database = config.databaseUrl === undefined ? `embedded PostgreSQL in ${config.dataDir}` : 'PostgreSQL';
  const lines = [`The Pet Store Service listens on ${address}/v1 (${database}). Documentation: ${address}/docs`];
  if (firstKey !== undefined) {
    lines.push(
      '',
      'An API key was made for you, and is shown this once. To make others, stop the service and run:',
      'npm run petstore -- keys create --client my-app',
      '',
      `  export API_KEY=${firstKey}`,
      '',
      'Add an animal and list it:',
      '',
      `  curl -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' \\`,
      `    -d '{"name":"Rex","categoryId":7}' ${address}/v1/pets`,
      `  curl -H "Authorization: Bearer $API_KEY" ${address}/v1/pets`,
      '',
    );
  }
  return lines.join('\n');
}

/** What to say when the server cannot listen. Errors of what starts with it stay as they are. */
function listenError(error: NodeJS.ErrnoException, { host, port }: Config): Error {
  // 'bind' is what node:cluster names.
  if (!['listen', 'bind', 'getaddrinfo'].includes(error.syscall ?? '')) return error;
  const unknownHost = `HOST is no address of this machine. Set it to one, or leave it out to listen on all.`;
  const known: Record<string, string> = {
    EADDRINUSE: `Port ${port} is in use. Stop the process that uses it, or set PORT to a free one.`,
    EACCES: `Port ${port} needs rights that this user does not have. Set PORT to one above 1023.`,
    EADDRNOTAVAIL: unknownHost,
    ENOTFOUND: unknownHost,
    EAI_AGAIN: unknownHost,
  };
  return new StartupError(known[error.code ?? ''] ?? `Cannot listen on ${host}:${port}: ${error.message}`);
}

/** For the person at the console; standard output belongs to the log. */
function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

function fail(error: unknown): never {
  tell(
    error instanceof StartupError ? `petstore: ${error.message}` : String((error as Error | undefined)?.stack ?? error),
  );
  process.exit(1);
}

main().catch(fail);

import { Logger } from '@nestjs/common';
import { type NestApplication, NestFactory } from '@nestjs/core';
import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { DataSource } from 'typeorm';
import { ApiKeysService, type IssuedApiKey } from '#api-keys';
import { StartupError } from '#errors';
import { PlatformExpressAdapter } from '#http';
import type { ServiceDataSource } from '#postgres';
import { ProcessGroup } from '#processes';
import { onStopSignal } from '#runtime';
import { type Application, BASE_PATH, product } from '#settings';
import { startTracing } from '#tracing';
import { applicationOf } from '../app.description.js';
import { AppModule } from '../app.module.js';
import type { ServiceOptions } from '../app.options.js';
import { APPLICATION_OPTIONS, setUpApplication } from '../app.setup.js';
import { ServiceCommands } from '../cli/service-commands.js';
import { failureText } from '../cli/failure-text.js';
import { refuseNullDevice, write } from '../cli/terminal.js';
import { loadEnvironmentFile, readConfig, type ServiceConfig } from '../settings.js';

/** Time in ms that modules have to close after the last connection, which includes running statements. */
const CLOSE_TIMEOUT_MS = 3_000;

/**
 * Starts the service with the settings of the environment and of `.env`, in WEB_CONCURRENCY processes, and stops it on
 * SIGTERM, SIGINT or SIGHUP. If the start fails, the cause is printed and the process ends with code 1.
 *
 * @example await startService({ features: [OrdersModule], migrations: [CreateOrder1795300000000] });
 * @param options the additions of a project
 */
export async function startService(options: ServiceOptions = {}): Promise<void> {
  // A closed terminal must not end the service.
  process.stderr.on('error', () => undefined);
  try {
    loadEnvironmentFile();
    const config = readConfig();
    if (cluster.isPrimary) await checkAddress(config);
    const greet = (port: number): void => tell(welcome(applicationOf(options), config, port));
    if (config.webConcurrency > 1 && cluster.isPrimary) return new ProcessGroup(config, greet).run();
    await serve(config, options);
  } catch (error) {
    fail(error);
  }
}

/**
 * Creates the application that `startService` serves, for programs that start and stop it themselves. It does not listen
 * yet. Its database is open, so the caller must close the application.
 *
 * @example const app = await createApplication(readConfig(), { features: [OrdersModule] });
 * @throws StartupError when the database cannot be opened, or a module or call of the project cannot be supported
 */
export async function createApplication(config: ServiceConfig, options: ServiceOptions = {}): Promise<NestApplication> {
  const app = await NestFactory.create<NestApplication>(
    AppModule.forRoot(config, options),
    new PlatformExpressAdapter(config),
    APPLICATION_OPTIONS,
  );
  try {
    setUpApplication(app);
    await options.setUp?.(app);
  } catch (error) {
    await app.close().catch(() => undefined);
    throw error;
  }
  return app;
}

/** Fails at once when PORT is in use: to open the database takes seconds. */
async function checkAddress({ host, port }: ServiceConfig): Promise<void> {
  const probe = createServer().listen(port, host);
  await once(probe, 'listening').catch(({ code, message }: NodeJS.ErrnoException) => {
    const inUse = `Port ${port} is in use. Stop the process that uses it, or set PORT to a free one.`;
    const other = `${message}. Set HOST to an address of this machine, or PORT to one above 1023.`;
    throw new StartupError(code === 'EADDRINUSE' ? inUse : other);
  });
  await once(probe.close(), 'close');
}

/** Serves requests in this process until a signal stops it. */
async function serve(config: ServiceConfig, options: ServiceOptions): Promise<void> {
  // Before the database is opened, so that all statements are traced.
  const stopTracing = await startTracing(config.otlpEndpoint);
  const app = await createApplication(config, options);
  await app.listen(config.port, config.host);

  // Log lines are held back until here; a failed start prints only its cause.
  app.flushLogs();

  // Commands cannot open the embedded database while this process uses it, so this process runs them.
  const commands = config.databaseUrl === undefined ? new ServiceCommands(app) : undefined;
  const stop = stopOnSignal(config, async (signal) => {
    await Promise.all([commands?.close(), app.close(signal)]);
    await stopTracing?.();
  });
  void app.get<ServiceDataSource>(DataSource).engine?.lost.then((reason) => {
    tell(failureText(reason));
    process.exitCode = 1;
    stop();
  });
  if (cluster.isPrimary) {
    const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
    const apiKeys = app.get(ApiKeysService);
    const first = config.databaseUrl === undefined ? await apiKeys.createFirstKey() : undefined;
    try {
      await write(process.stderr, `${welcome(applicationOf(options), config, port, first?.secret)}\n`);
      if (first !== undefined) refuseNullDevice(process.stderr);
    } catch (error) {
      if (first !== undefined) await withdraw(apiKeys, first, error as Error);
    }
  }
}

/** Revokes the first key, because nobody has seen it. */
async function withdraw(apiKeys: ApiKeysService, { key }: IssuedApiKey, { message }: Error): Promise<void> {
  await apiKeys.withdraw(key);
  new Logger('Start').warn(
    `${message} Nobody has seen the first API key, ${key.id}: it is revoked. ` +
      `Make another: ${product().command} keys create --client my-app`,
  );
}

/**
 * Drains the server and closes the application on SIGTERM, SIGINT or SIGHUP, and in a worker when the primary process is gone.
 * Shutdown hooks of modules get the signal. The exit code is `process.exitCode`, or 1 when closing fails or takes too long.
 *
 * @returns a function that does the same without a signal
 */
function stopOnSignal(config: ServiceConfig, close: (signal?: NodeJS.Signals) => Promise<void>): () => void {
  let stopping = false;
  const stop = (signal?: NodeJS.Signals): void => {
    if (stopping) return;
    stopping = true;
    const limit = config.shutdownDelayMs + config.shutdownTimeoutMs + CLOSE_TIMEOUT_MS;
    setTimeout(() => {
      tell(`petstore: The database did not close within ${limit} ms; the statements that it waits for are cut.`);
      process.exit(1);
    }, limit);
    close(signal).then(() => process.exit(), fail);
  };
  onStopSignal(stop, () => {
    // Not in a worker, which may get one signal twice: from the primary process, and as a member of its process group.
    if (cluster.isPrimary) process.exit(1);
  });
  const { worker } = cluster;
  worker?.on('disconnect', () => {
    // The primary process is gone. Without this flag node:cluster would end the worker at once, with its requests.
    worker.exitedAfterDisconnect = true;
    stop();
  });
  return stop;
}

/**
 * The text on the console after a start, in lines of at most 80 columns: the address of the service, the first API key if
 * one was made, with a command to try it, and where the documentation is.
 */
function welcome(application: Application, config: ServiceConfig, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const base = `${address}${BASE_PATH}`;
  const interfaces = config.host === '0.0.0.0' || config.host === '::' ? ' (all interfaces)' : '';
  const lines = [`The ${application.info.title} listens on ${base}${interfaces}`];
  if (firstKey !== undefined) {
    lines.push(
      '',
      'Your API key, shown only once:',
      '',
      `  export API_KEY=${firstKey}`,
      '',
      'Add a pet:',
      '',
      `  curl -H "Authorization: Bearer $API_KEY" \\`,
      `    -H 'Content-Type: application/json' \\`,
      `    -d '{"name":"Rex","categoryId":7}' ${base}/pets`,
      '',
    );
  }
  lines.push(`Documentation: ${address}/docs`);
  return lines.join('\n');
}

/** Prints to standard error; standard output carries the log. */
function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

function fail(error: unknown): never {
  tell(failureText(error));
  process.exit(1);
}

import { type INestApplication, type Type } from '@nestjs/common';
import { type NestApplication, NestFactory } from '@nestjs/core';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '#access';
import { PlatformExpressAdapter } from '#edge';
import type { ServiceDataSource } from '#postgres';
import { onStopSignal, StartupError } from '#runtime';
import { BASE_PATH } from '#settings';
import { failureText } from './failure-text.js';
import { ServiceCommands } from './service-commands.js';
import { type CoreConfig, loadEnvironmentFile, readConfig, type ServiceDefinition } from '#definition';
import { definitionOf, serviceOf } from './service.module.js';
import { APPLICATION_OPTIONS, setUpApplication } from './set-up.js';

/** Time in ms that modules have to close after the last connection, which includes running statements. */
const CLOSE_TIMEOUT_MS = 3_000;

/** Additions of a project to the start of its service. */
export interface ServiceOptions {
  /**
   * Called with each application after the platform's own set-up and before it listens. Calls that Nest's documentation
   * puts into `main.ts`, such as `app.useWebSocketAdapter`, belong here.
   */
  readonly setUp?: (app: INestApplication) => void | Promise<void>;
}

/** See `startService`. */
export async function start(app: Type, options: ServiceOptions): Promise<void> {
  // A closed terminal must not end the service.
  process.stderr.on('error', () => undefined);
  let { name } = app;
  try {
    const definition = definitionOf(app);
    ({ name } = definition.product);
    const [argument] = process.argv.slice(2);
    if (argument !== undefined)
      throw new StartupError(
        `The service takes no arguments such as ${argument}: .env.example describes its settings. For commands: ${definition.product.command} --help.`,
      );
    await loadEnvironmentFile(definition);
    const config = await readConfig(definition);
    await serve(app, definition, config, options);
  } catch (error) {
    fail(error, name);
  }
}

/** See `createApplication`. `make` is for the test kit, which replaces providers before the application is made. */
export async function create(
  app: Type,
  config: CoreConfig,
  options: ServiceOptions,
  make = (module: Type, adapter: PlatformExpressAdapter): Promise<NestApplication> =>
    NestFactory.create(module, adapter, APPLICATION_OPTIONS),
): Promise<NestApplication> {
  const nest = await make(await serviceOf(app, config), new PlatformExpressAdapter(config));
  try {
    await setUpApplication(nest);
    await options.setUp?.(nest);
  } catch (error) {
    await nest.close().catch(() => undefined);
    throw error;
  }
  return nest;
}

function failToListen({ code, message }: NodeJS.ErrnoException, port: number): never {
  const inUse = `Port ${port} is in use. Stop the process that uses it, or set PORT to a free one.`;
  const other = `${message}. Set HOST to an address of this machine, or PORT to one above 1023.`;
  throw new StartupError(code === 'EADDRINUSE' ? inUse : other);
}

/** Serves requests in this process until a signal stops it. */
async function serve(
  module: Type,
  definition: ServiceDefinition,
  config: CoreConfig,
  options: ServiceOptions,
): Promise<void> {
  const { product } = config;
  const ends: (() => Promise<void>)[] = [];
  // Before the database is opened: a part may trace all statements.
  for (const part of definition.parts) ends.push(...[await part.start?.(config)].filter((end) => end !== undefined));
  const app = await create(module, config, options);
  await app.listen(config.port, config.host).catch(async (error: NodeJS.ErrnoException) => {
    if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') throw error;
    await app.close();
    failToListen(error, config.port);
  });

  // Log lines are held back until here; a failed start prints only its cause.
  app.flushLogs();

  // Commands cannot open the embedded database while this process uses it, so this process runs them.
  const commands = config.databaseUrl === undefined ? new ServiceCommands(app, definition) : undefined;
  const stop = stopOnSignal(config, async (signal) => {
    await Promise.all([commands?.close(), app.close(signal)]);
    await Promise.all(ends.map((end) => end()));
  });
  void app.get<ServiceDataSource>(DataSource).engine?.lost.then((reason) => {
    tell(failureText(reason, product.name));
    process.exitCode = 1;
    stop();
  });
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const first = config.databaseUrl === undefined ? await app.get(ApiKeysService).createFirstKey() : undefined;
  tell(welcome(definition, config, port, first?.secret));
}

/** Closes the application on a stop signal, or when the returned function is called. The exit code is 1 when closing takes too long. */
function stopOnSignal(config: CoreConfig, close: (signal?: NodeJS.Signals) => Promise<void>): () => void {
  const { name } = config.product;
  let stopping = false;
  const stop = (signal?: NodeJS.Signals): void => {
    if (stopping) return;
    stopping = true;
    const limit = config.shutdownDelayMs + config.shutdownTimeoutMs + CLOSE_TIMEOUT_MS;
    setTimeout(() => {
      tell(`${name}: The database did not close within ${limit} ms; the statements that it waits for are cut.`);
      process.exit(1);
    }, limit);
    close(signal)
      .then(() => process.exit())
      .catch((error: unknown) => fail(error, name));
  };
  onStopSignal(stop, () => process.exit(1));
  return stop;
}

/** The text on the console after a start, in lines of at most 80 columns. */
function welcome(definition: ServiceDefinition, config: CoreConfig, port: number, firstKey?: string): string {
  const address = `http://localhost:${port}`;
  const base = `${address}${BASE_PATH}`;
  const interfaces = config.host === '0.0.0.0' || config.host === '::' ? ' (all interfaces)' : '';
  const lines = [`The ${definition.info.title} listens on ${base}${interfaces}`];
  if (firstKey !== undefined) {
    lines.push('', 'Your API key, shown only once:', '', `  export API_KEY=${firstKey}`, '');
    lines.push(...(definition.firstCall?.(base) ?? []));
  } else {
    lines.push(`To make an API key: ${definition.product.command} keys create --client my-app`);
  }
  lines.push(...definition.parts.flatMap((part) => part.greeting?.(address) ?? []));
  return lines.join('\n');
}

/** Prints to standard error; standard output carries the log. */
function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

function fail(error: unknown, product: string): never {
  tell(failureText(error, product));
  process.exit(1);
}

import type { Type } from '@nestjs/common';
import type { NestApplication } from '@nestjs/core';
import type { CoreConfig } from '#definition';
import type { ServiceOptions } from './start-service.js';

/**
 * Starts a service with the settings of the environment and of `.env`, and stops it on SIGTERM, SIGINT or SIGHUP. If the
 * start fails, the cause is printed and the process ends with code 1; so it does if the process has arguments. A script of `package.json` needs `exec`, or a SIGTERM to
 * `npm start` does not reach the service.
 *
 * @example await startService(AppModule);
 * @param app the application's module, which imports `PlatformModule.forRoot(…)` and the features
 */
export async function startService(app: Type, options: ServiceOptions = {}): Promise<void> {
  const { start } = await import('./start-service.js');
  await start(app, options);
}

/**
 * Creates the application that `startService` serves, for programs that start and stop it themselves. It does not listen
 * yet. Its database is open, so the caller must close the application.
 *
 * @example const app = await createApplication(AppModule, await readConfig(ORDERS));
 * @param config the settings of the definition that `app` declares
 * @throws StartupError when the database cannot be opened, or a module or call of the project cannot be supported
 */
export async function createApplication(
  app: Type,
  config: CoreConfig,
  options: ServiceOptions = {},
): Promise<NestApplication> {
  const { create } = await import('./start-service.js');
  return create(app, config, options);
}

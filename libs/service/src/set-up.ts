import { type INestApplication, Logger as Log, type NestApplicationOptions } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Express } from 'express';
import type { Logger } from 'pino';
import { securitySchemesOf } from '#api-keys';
import { FastPaths } from '#runtime';
import { parseForm } from '#http';
import { writeStreamsAsJson } from '#json';
import { callHandlersDirectly, HANDLER_CALLS } from '#nest-speed';
import { LOGGER, NestLogger } from '#observability';
import { OpenApiDocument } from '#openapi';
import { refuseUnprotectedHandlers } from '#operations';
import { Config, URI_VERSIONS } from '#settings';
import type { CoreConfig } from './core-settings.js';

/** Options for creating the Nest application, in `startService` and in every test. */
export const APPLICATION_OPTIONS: NestApplicationOptions = {
  bufferLogs: true,
  // The caller reports start failures once; Nest would print the stack first.
  autoFlushLogs: false,
  abortOnError: false,
};

/** Configures the Nest application before it listens, in `startService` and in every test. */
export function setUpApplication(app: INestApplication): void {
  const { corsOrigins, fastPaths } = app.get<CoreConfig>(Config);
  app.useLogger(new NestLogger(app.get<Logger>(LOGGER)));
  (app.getHttpAdapter().getInstance() as Express).set('query parser', parseForm);
  app.enableVersioning(URI_VERSIONS);
  writeStreamsAsJson(app);
  if (fastPaths) useFastPaths(app);
  refuseUnprotectedHandlers(app);
  app.get(OpenApiDocument).describe(app, securitySchemesOf(app.get(DiscoveryService)));
  if (corsOrigins.length > 0) {
    app.enableCors({
      origin: corsOrigins,
      // `unmatched-routes.ts` serves OPTIONS, with the methods that the path serves.
      preflightContinue: true,
      methods: [],
      // Browsers may send any header field, and scripts read all: no response depends on cookies.
      exposedHeaders: '*',
      // How long browsers may cache the response to a preflight request, in s.
      maxAge: 3600,
    });
  }
}

/** Changes how handlers are called, unless a check at start forbids it. Logs each fast path that stays off. */
function useFastPaths(app: INestApplication): void {
  const paths = app.get(FastPaths);
  const { fastPath } = HANDLER_CALLS;
  if (paths.get(fastPath) === undefined) paths.set(fastPath, callHandlersDirectly(app));
  for (const [path, difference] of paths) {
    if (difference === undefined) continue;
    new Log('FastPaths').warn(`The fast path ${path} stays off. ${difference}. Responses are the same, only slower.`);
  }
}

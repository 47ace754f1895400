import {
  type INestApplication,
  Logger as Log,
  type NestApplicationOptions,
  type VersioningOptions,
  VersioningType,
} from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Express } from 'express';
import type { Logger } from 'pino';
import { securitySchemesOf } from '#access';
import { callHandlersDirectly, parseForm } from '#edge';
import { LOGGER, NestLogger } from '#ops';
import { OpenApiDocument, refuseUnprotectedHandlers } from '#operations';
import { isTested, untestedDependencies } from '#runtime';
import { Config } from '#settings';
import type { CoreConfig } from '#definition';

/** Options for creating the Nest application, in `startService` and in every test. */
export const APPLICATION_OPTIONS: NestApplicationOptions = {
  bufferLogs: true,
  // The caller reports start failures once; Nest would print the stack first.
  autoFlushLogs: false,
  abortOnError: false,
};

/** Routes are below /v1, unless the controller declares another version, or VERSION_NEUTRAL. */
export const URI_VERSIONS: VersioningOptions = { type: VersioningType.URI, defaultVersion: '1' };

/** Configures the Nest application before it listens, in `startService` and in every test. */
export async function setUpApplication(app: INestApplication): Promise<void> {
  const { corsOrigins } = app.get<CoreConfig>(Config);
  app.useLogger(new NestLogger(app.get<Logger>(LOGGER)));
  (app.getHttpAdapter().getInstance() as Express).set('query parser', parseForm);
  app.enableVersioning(URI_VERSIONS);
  // Nest itself calls the handlers of a release that may call them in another way.
  if (isTested('@nestjs/core')) await callHandlersDirectly(app);
  const untested = untestedDependencies().join(', ');
  if (untested !== '')
    new Log('Dependencies').warn(
      `The tests have not passed for ${untested}. Install the versions of package-lock.json.`,
    );
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

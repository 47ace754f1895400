import {
  type INestApplication,
  type NestApplicationOptions,
  type VersioningOptions,
  VersioningType,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { Config } from './config.js';
import { callHandlersDirectly } from './platform/fast-paths/handler-calls.js';
import { OpenApiDocument } from './platform/openapi/openapi-document.js';
import { LOGGER, NestLogger } from './platform/observability/logger.js';

/** Options for creating the Nest application, in main.ts and in every test. */
export const APPLICATION_OPTIONS: NestApplicationOptions = {
  // PlatformExpressAdapter reads bodies itself, after the guards.
  bodyParser: false,
  bufferLogs: true,
  // The caller reports start failures once; Nest would print the stack first.
  autoFlushLogs: false,
  abortOnError: false,
};

/** The routes of every controller are below /v1, unless the controller declares VERSION_NEUTRAL. */
export const VERSIONING: VersioningOptions = { type: VersioningType.URI, defaultVersion: '1' };

/** Response header fields that scripts of other origins may read. */
const CORS_EXPOSED_HEADERS = [
  'Deprecation',
  'ETag',
  'Idempotent-Replayed',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Sunset',
  'X-Request-Id',
];

/** How long browsers may cache the answer to a preflight request, in s. */
const CORS_MAX_AGE = 3600;

/** Configures the Nest application before it listens, in main.ts and in every test. */
export function setUpApplication(app: INestApplication): void {
  const { corsOrigins, fastPaths } = app.get(Config);
  app.useLogger(new NestLogger(app.get<Logger>(LOGGER)));
  app.enableVersioning(VERSIONING);
  if (fastPaths.includes('handler-calls')) callHandlersDirectly(app);
  if (corsOrigins.length > 0) {
    app.enableCors({
      origin: corsOrigins,
      exposedHeaders: CORS_EXPOSED_HEADERS,
      maxAge: CORS_MAX_AGE,
      // `unmatched-routes.ts` answers OPTIONS, with `Allow`.
      preflightContinue: true,
    });
  }
  app.get(OpenApiDocument).describe(app);
}

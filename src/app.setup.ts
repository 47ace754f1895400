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

/** Options with which the application object is made, by main.ts and by every test. */
export const APPLICATION_OPTIONS: NestApplicationOptions = {
  // The platform's adapter reads bodies itself, behind the guards.
  bodyParser: false,
  bufferLogs: true,
  // Whoever makes the application tells of a failure, once; Nest would print it first, with its stack.
  autoFlushLogs: false,
  abortOnError: false,
};

/** Every controller lives below /v1 unless it says VERSION_NEUTRAL. */
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

/** Time in s that browsers keep the answer to a preflight request. */
const CORS_MAX_AGE = 3600;

/** What the application object itself needs before it listens, the same for main.ts and every test. */
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
      // The answer to OPTIONS, with its Allow, is the adapter's.
      preflightContinue: true,
    });
  }
  app.get(OpenApiDocument).describe(app);
}

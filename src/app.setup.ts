import type { INestApplication, NestApplicationOptions, NestModule, Type } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import type { Express } from 'express';
import type { Logger } from 'pino';
import { Config } from './config.js';
import { URI_VERSIONS } from './platform/application.js';
import { refuseUnprotectedHandlers } from './platform/auth/other-transports.js';
import { StartupError } from './platform/errors/startup-error.js';
import { parseQuery } from './platform/input/input.pipe.js';
import { callHandlersDirectly } from './platform/internals/handler-calls.js';
import { ParsedAnswersInterceptor } from './platform/json/parsed-answers.interceptor.js';
import { OpenApiDocument } from './platform/openapi/openapi-document.js';
import { RequestModule } from './platform/platform.module.js';
import type { PlatformExpressAdapter } from './platform/server/express-adapter.js';
import { PASSES_REQUEST_TO_LOG_METADATA } from './platform/server/requests/request-context.js';
import { LOGGER, NestLogger } from './platform/logging/logger.js';

/** Options for creating the Nest application, in main.ts and in every test. */
export const APPLICATION_OPTIONS: NestApplicationOptions = {
  bufferLogs: true,
  // The caller reports start failures once; Nest would print the stack first.
  autoFlushLogs: false,
  abortOnError: false,
};

/** Request header fields that pages of other origins may send, besides those that operations declare. */
const CORS_REQUEST_HEADERS = ['Authorization', 'Content-Type', 'If-None-Match', 'Traceparent', 'X-Request-Id'];

/** How long browsers may cache the answer to a preflight request, in s. */
const CORS_MAX_AGE = 3600;

/** Configures the Nest application before it listens, in main.ts and in every test. */
export function setUpApplication(app: INestApplication): void {
  const { corsOrigins, fastPaths } = app.get(Config);
  app.useLogger(new NestLogger(app.get<Logger>(LOGGER)));
  (app.getHttpAdapter().getInstance() as Express).set('query parser', parseQuery);
  app.enableVersioning(URI_VERSIONS);
  if (fastPaths) callHandlersDirectly(app);
  parseAnswersForInterceptors(app);
  nameRequestsInLog(app);
  refuseUnprotectedHandlers(app);
  const document = app.get(OpenApiDocument);
  document.describe(app);
  forbidAddressChanges(app);
  if (corsOrigins.length > 0) {
    const { requests, responses } = document.headerFields;
    app.enableCors({
      origin: corsOrigins,
      // `unmatched-routes.ts` answers OPTIONS, with the methods that the path serves.
      preflightContinue: true,
      methods: [],
      allowedHeaders: [...CORS_REQUEST_HEADERS, ...requests],
      exposedHeaders: responses,
      maxAge: CORS_MAX_AGE,
    });
  }
}

/**
 * The document is made, so paths must not change any more: from now on `enableVersioning` and `setGlobalPrefix`, which a
 * project may call in `setUp`, throw a StartupError.
 */
function forbidAddressChanges(app: INestApplication): void {
  for (const name of ['enableVersioning', 'setGlobalPrefix'] as const) {
    app[name] = () => {
      throw new StartupError(
        `setUp must not call app.${name}: it would change the addresses of animals, health checks and pages. In your own ` +
          "modules use @Version('2') for /v2, and @Controller('…') or RouterModule for a prefix.",
      );
    };
  }
}

/**
 * Lets global interceptors (`APP_INTERCEPTOR`) see values where handlers return finished JSON. Without global
 * interceptors, requests have no extra step.
 *
 * @throws StartupError for a request-scoped interceptor, which Nest would call while the JSON is still text
 */
function parseAnswersForInterceptors(app: INestApplication): void {
  const applicationConfig = app.get(ApplicationConfig);
  if (applicationConfig.getGlobalRequestInterceptors().length > 0) {
    throw new StartupError(
      'An APP_INTERCEPTOR that is made for each request cannot see the answers of all modules. Make it a singleton, or ' +
        'bind it to your controllers with @UseInterceptors.',
    );
  }
  if (applicationConfig.getGlobalInterceptors().length > 0) app.useGlobalInterceptors(new ParsedAnswersInterceptor());
}

/**
 * Adds the id and operation of the current request to log lines of Nest's Logger. Stays off, because it costs time, if
 * all code of requests passes the request itself.
 */
function nameRequestsInLog(app: INestApplication): void {
  if (![...app.get(ModulesContainer).values()].some(servesRequests)) return;
  app.get<HttpAdapterHost<PlatformExpressAdapter>>(HttpAdapterHost).httpAdapter.nameRequestsInLog();
}

type ModuleOfNest = ModulesContainer extends Map<string, infer Found> ? Found : never;

/** Whether a module has middleware, global enhancers, or controllers without `@PassesRequestToLog()`. */
function servesRequests({ metatype, controllers, providers, injectables }: ModuleOfNest): boolean {
  const { configure } = metatype.prototype as Partial<NestModule>;
  const tokens = metatype === RequestModule ? [] : [...providers.keys(), ...injectables.keys()];
  return (
    configure !== undefined ||
    // Nest keeps global enhancers under tokens such as `APP_GUARD (UUID: …)`.
    tokens.some((token) => /^APP_/.test(String(token))) ||
    [...controllers.keys()].some(
      (controller) => !Reflect.hasMetadata(PASSES_REQUEST_TO_LOG_METADATA, controller as Type),
    )
  );
}

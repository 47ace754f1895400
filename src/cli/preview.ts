import { type INestApplication } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { OperationRegistry } from '#api-keys';
import { PlatformExpressAdapter } from '#http';
import { OpenApiDocument } from '#openapi';
import { type Config, URI_VERSIONS } from '#settings';
import { applicationOf } from '../app.description.js';
import { AppModule } from '../app.module.js';
import type { AppOptions } from '../app.options.js';

/** Makes the OpenAPI document of the application. It needs no database: in preview mode Nest runs no constructor. */
export async function describeApplication(config: Config, options: AppOptions = {}): Promise<OpenApiDocument> {
  const app: INestApplication = await NestFactory.create(
    AppModule.forRoot(config, options),
    new PlatformExpressAdapter(config),
    // Without abortOnError Nest would end the process itself, and print nothing.
    { preview: true, logger: false, abortOnError: false },
  );
  app.enableVersioning(URI_VERSIONS);
  const discovery = new DiscoveryService(app.get(ModulesContainer));
  const document = new OpenApiDocument(config, applicationOf(options), new OperationRegistry(discovery));
  document.describe(app);
  return document;
}

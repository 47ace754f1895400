import type { INestApplication, Type } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { securitySchemesOf } from '#access';
import { PlatformExpressAdapter } from '#edge';
import { OpenApiDocument, OperationRegistry } from '#operations';
import { URI_VERSIONS } from '#settings';
import type { CoreConfig } from '#definition';
import { definitionOf, serviceOf } from './service.module.js';

/** Makes the OpenAPI document of the application. It needs no database. */
export async function describeApplication(app: Type, config: CoreConfig): Promise<OpenApiDocument> {
  // In preview mode Nest runs no constructor.
  const nest = await NestFactory.create<INestApplication>(
    await serviceOf(app, config),
    new PlatformExpressAdapter(config),
    // Without abortOnError Nest would end the process itself, and print nothing.
    { preview: true, logger: false, abortOnError: false },
  );
  nest.enableVersioning(URI_VERSIONS);
  const discovery = new DiscoveryService(nest.get(ModulesContainer));
  const document = new OpenApiDocument(config, definitionOf(app), new OperationRegistry(discovery, config));
  document.describe(nest, securitySchemesOf(discovery));
  return document;
}

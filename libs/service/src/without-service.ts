import type { INestApplication, Type } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { getRepositoryToken } from '@nestjs/typeorm';
import { getMetadataArgsStorage } from 'typeorm';
import { securitySchemesOf } from '#access';
import { PlatformExpressAdapter } from '#edge';
import { OpenApiDocument, OperationRegistry } from '#operations';
import type { CoreConfig } from '#definition';
import { definitionOf, serviceOf } from './service.module.js';
import { URI_VERSIONS } from './set-up.js';

/** The application without instances: in preview mode Nest runs no constructor. */
async function previewOf(app: Type, config: CoreConfig): Promise<INestApplication> {
  return NestFactory.create<INestApplication>(
    await serviceOf(app, config),
    new PlatformExpressAdapter(config),
    // Without abortOnError Nest would end the process itself, and print nothing.
    { preview: true, logger: false, abortOnError: false },
  );
}

/** The classes that features give `TypeOrmModule.forFeature`: not those of another data source, or that are imported only. */
export async function entitiesOf(app: Type, config: CoreConfig): Promise<Type[]> {
  const modules = (await previewOf(app, config)).get(ModulesContainer);
  const tokens = new Set([...modules.values()].flatMap(({ providers }) => [...providers.keys()]));
  const classes = getMetadataArgsStorage().tables.map(({ target }) => target as Type);
  return classes.filter((each) => tokens.has(getRepositoryToken(each)));
}

/** Makes the OpenAPI document of the application. It needs no database. */
export async function describeApplication(app: Type, config: CoreConfig): Promise<OpenApiDocument> {
  const nest = await previewOf(app, config);
  nest.enableVersioning(URI_VERSIONS);
  const discovery = new DiscoveryService(nest.get(ModulesContainer));
  const document = new OpenApiDocument(config, definitionOf(app), new OperationRegistry(discovery, config));
  document.describe(nest, securitySchemesOf(discovery));
  return document;
}

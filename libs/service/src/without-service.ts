import type { INestApplication, Type } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { securitySchemesOf } from '#access';
import { PlatformExpressAdapter } from '#edge';
import { OpenApiDocument, OperationRegistry } from '#operations';
import { type Application, URI_VERSIONS } from '#settings';
import type { CoreConfig } from '#definition';
import { definitionOf, serviceOf } from './service.module.js';

/** Makes the OpenAPI document of the application. It needs no database. */
export async function describeApplication(app: Type, config: CoreConfig): Promise<OpenApiDocument> {
  const nest = await preview(app, config);
  nest.enableVersioning(URI_VERSIONS);
  const document = new OpenApiDocument(config, definitionOf(app), registryOf(nest, config));
  document.describe(nest, securitySchemesOf(discoveryOf(nest)));
  return document;
}

/** The scopes that operations of the application need, and its default ones. It needs no database. */
export async function scopesOf(app: Type, config: CoreConfig): Promise<string[]> {
  return allScopes(registryOf(await preview(app, config), config), definitionOf(app));
}

export function allScopes({ scopes }: OperationRegistry, { defaultScopes }: Application): string[] {
  return [...new Set([...scopes, ...defaultScopes])];
}

/** The application without instances: in preview mode Nest runs no constructor. */
async function preview(app: Type, config: CoreConfig): Promise<INestApplication> {
  return NestFactory.create(
    await serviceOf(app, config),
    new PlatformExpressAdapter(config),
    // Without abortOnError Nest would end the process itself, and print nothing.
    { preview: true, logger: false, abortOnError: false },
  );
}

function registryOf(app: INestApplication, config: CoreConfig): OperationRegistry {
  return new OperationRegistry(discoveryOf(app), config);
}

function discoveryOf(app: INestApplication): DiscoveryService {
  return new DiscoveryService(app.get(ModulesContainer));
}

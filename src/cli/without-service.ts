import type { INestApplication } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import type { DataSource } from 'typeorm';
import { ApiKeysService, ApiKeyVerifier } from '#api-keys';
import { PlatformExpressAdapter } from '#http';
import { KeyUsage } from '#key-usage';
import { OpenApiDocument } from '#openapi';
import { OperationRegistry } from '#operations';
import { Database } from '#postgres';
import { Clock } from '#runtime';
import { type Application, URI_VERSIONS } from '#settings';
import { applicationOf } from '../app.description.js';
import { AppModule } from '../app.module.js';
import type { AppOptions } from '../app.options.js';
import { readConfig, type ServiceConfig } from '../settings.js';

/** Makes the OpenAPI document of the application. It needs no database. */
export async function describeApplication(options: AppOptions = {}, config = readConfig()): Promise<OpenApiDocument> {
  const app = await preview(options, config);
  app.enableVersioning(URI_VERSIONS);
  const document = new OpenApiDocument(config, applicationOf(options), registryOf(app, config));
  document.describe(app);
  return document;
}

/** The scopes that operations of the application need, and its default ones. It needs no database. */
export async function scopesOf(options: AppOptions): Promise<string[]> {
  const config = readConfig();
  return allScopes(registryOf(await preview(options, config), config), applicationOf(options));
}

export function allScopes({ scopes }: OperationRegistry, { defaultScopes }: Application): string[] {
  return [...new Set([...scopes, ...defaultScopes])];
}

/** The application without instances: in preview mode Nest runs no constructor. */
function preview(options: AppOptions, config: ServiceConfig): Promise<INestApplication> {
  return NestFactory.create(
    AppModule.forRoot(config, options),
    new PlatformExpressAdapter(config),
    // Without abortOnError Nest would end the process itself, and print nothing.
    { preview: true, logger: false, abortOnError: false },
  );
}

function registryOf(app: INestApplication, config: ServiceConfig): OperationRegistry {
  return new OperationRegistry(new DiscoveryService(app.get(ModulesContainer)), config);
}

/** The API keys of an open database, and their usage, without Nest. */
export function keysOfDatabase(dataSource: DataSource, application: Application): [ApiKeysService, KeyUsage] {
  const database = new Database(dataSource, readConfig());
  const clock = new Clock();
  const apiKeys = new ApiKeysService(database, new ApiKeyVerifier(database, clock), clock, application);
  return [apiKeys, new KeyUsage(database, clock)];
}

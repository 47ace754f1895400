import type { INestApplication } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import type { DataSource } from 'typeorm';
import { ApiKeysService, ApiKeyVerifier, OperationRegistry } from '#api-keys';
import { PlatformExpressAdapter } from '#http';
import { KeyUsage } from '#key-usage';
import { OpenApiDocument } from '#openapi';
import { Database } from '#postgres';
import { Clock } from '#runtime';
import { type Application, URI_VERSIONS } from '#settings';
import { applicationOf } from '../app.description.js';
import { AppModule } from '../app.module.js';
import type { AppOptions } from '../app.options.js';
import { readConfig } from '../settings.js';

/** Makes the OpenAPI document of the application. It needs no database: in preview mode Nest runs no constructor. */
export async function describeApplication(options: AppOptions = {}, config = readConfig()): Promise<OpenApiDocument> {
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

/** The API keys of an open database, and their usage, without Nest. */
export function keysOfDatabase(dataSource: DataSource, application: Application): [ApiKeysService, KeyUsage] {
  const database = new Database(dataSource, readConfig());
  const clock = new Clock();
  const apiKeys = new ApiKeysService(database, new ApiKeyVerifier(database, clock), clock, application);
  return [apiKeys, new KeyUsage(database, clock)];
}

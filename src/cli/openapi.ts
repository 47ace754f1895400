import { DiscoveryService, ModulesContainer, NestFactory, Reflector } from '@nestjs/core';
import type { Command } from 'commander';
import { AppModule } from '../app.module.js';
import { VERSIONING } from '../app.setup.js';
import { readConfig } from '../config.js';
import { PlatformExpressAdapter } from '../platform/http/express-adapter.js';
import { OpenApiDocument } from '../platform/openapi/openapi-document.js';

/** Adds `openapi`. */
export function addOpenApiCommand(program: Command): void {
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--yaml', 'print YAML instead of JSON')
    .option('--json', 'print JSON, as without it')
    .action(async ({ yaml }: { yaml?: boolean }) => {
      const config = readConfig();
      // A preview has every controller and makes none of their dependencies: no database is opened.
      const options = { preview: true, logger: false } as const;
      const app = await NestFactory.create(AppModule.forRoot(config), new PlatformExpressAdapter(config), options);
      app.enableVersioning(VERSIONING);
      const document = new OpenApiDocument(config, new DiscoveryService(app.get(ModulesContainer)), new Reflector());
      document.describe(app);
      process.stdout.write(yaml ? document.yaml : document.json);
    });
}

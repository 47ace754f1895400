import type { Command } from 'commander';
import { readConfig } from '../config.js';

/** Adds `openapi`. */
export function addOpenApiCommand(program: Command): void {
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--yaml', 'print YAML instead of JSON')
    .option('--json', 'print JSON, the default')
    .action(async ({ yaml }: { yaml?: boolean }) => {
      const { describeApplication } = await import('./preview.js');
      const document = await describeApplication(readConfig());
      process.stdout.write(yaml ? document.yaml : document.json);
    });
}

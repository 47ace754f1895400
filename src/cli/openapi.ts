import type { Command } from 'commander';
import type { CommandContext } from './command/command-context.js';

/** Adds `openapi`. */
export function addOpenApiCommand(program: Command, context: CommandContext): void {
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--yaml', 'print YAML instead of JSON')
    .option('--json', 'print JSON, the default')
    .action(async ({ yaml }: { yaml?: boolean }) => {
      const document = await context.document();
      context.terminal.print(yaml ? document.yaml : document.json);
    });
}

import type { Type } from '@nestjs/common';
import { runProgram } from '#commands';
import type { ServiceDefinition } from '#definition';

/**
 * Runs the command line with the settings of the environment and `.env`, prints a failure, and sets the exit code.
 *
 * @example await runCommands(ORDERS, async () => (await import('./app.module.js')).AppModule);
 * @param load imports the application's module: only commands that need the operations or entities load the framework
 */
export async function runCommands(definition: ServiceDefinition, load: () => Promise<Type>): Promise<void> {
  await runProgram(definition, {
    document: async (config) => (await import('./without-service.js')).describeApplication(await load(), config),
    entities: async (config) => (await import('./without-service.js')).entitiesOf(await load(), config),
    failureText: async (...failure) => (await import('./failure-text.js')).failureText(...failure),
  });
}

import { NestFactory } from '@nestjs/core';
import type { Command } from 'commander';
import type { StoredApiKey } from '../platform/auth/api-key.repository.js';
import { ApiKeyRequestError, ApiKeysService } from '../platform/auth/api-keys.service.js';
import { DEFAULT_SCOPES } from '../platform/auth/require-scopes.decorator.js';
import { CommandModule } from './command.module.js';
import { CommandError, durationArgument, printResult, table } from './terminal.js';

/** Adds `keys create|list|revoke`. */
export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('make, list and revoke API keys');

  keys
    .command('create')
    .description('make an API key and print its secret, once')
    .requiredOption('--name <name>', 'who uses the key')
    .option('--scopes <list>', `what it may do, separated by commas (default: ${DEFAULT_SCOPES.join(',')})`)
    .option(
      '--expires <duration>',
      'when it ends, such as 30m, 24h or 90d (default: never)',
      durationArgument('--expires'),
    )
    .option('--quiet', 'print the secret alone')
    .option('--json', 'print JSON')
    .action(async (options: { name: string; scopes?: string; expires?: number; quiet?: boolean; json?: boolean }) => {
      const { key, secret } = await withApiKeys((apiKeys) =>
        apiKeys.create({
          name: options.name,
          scopes: options.scopes?.split(',').map((scope) => scope.trim()),
          expiresAt: options.expires === undefined ? undefined : new Date(Date.now() + options.expires),
        }),
      );
      const text = options.quiet
        ? secret
        : `${secret}\n\nStore it now: only its hash is kept, and it is never shown again.\n\n${keyTable([key])}`;
      printResult(options.json, { ...describe(key), secret }, text);
    });

  keys
    .command('list')
    .description('list the API keys')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const list = await withApiKeys((apiKeys) => apiKeys.list());
      printResult(options.json, list.map(describe), list.length === 0 ? 'There are no API keys.' : keyTable(list));
    });

  keys
    .command('revoke')
    .description('refuse an API key from now on')
    .argument('<key>', 'its id, or at least 6 of its displayed first characters')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { json?: boolean }) => {
      const key = await withApiKeys((apiKeys) => apiKeys.revoke(reference));
      printResult(options.json, describe(key), `Revoked:\n${keyTable([key])}`);
    });
}

async function withApiKeys<Result>(work: (apiKeys: ApiKeysService) => Promise<Result>): Promise<Result> {
  const context = await NestFactory.createApplicationContext(CommandModule.forRoot(), {
    logger: false,
    abortOnError: false,
  });
  try {
    return await work(context.get(ApiKeysService));
  } catch (error) {
    throw error instanceof ApiKeyRequestError ? new CommandError(error.message) : error;
  } finally {
    await context.close();
  }
}

function describe(key: StoredApiKey): Record<string, unknown> {
  return { ...key, id: key.id.toString(), state: stateOf(key) };
}

function keyTable(keys: StoredApiKey[]): string {
  const day = (date: Date | null): string => date?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
  return table(
    ['ID', 'KEY', 'NAME', 'STATE', 'SCOPES', 'CREATED (UTC)', 'EXPIRES', 'REVOKED'],
    keys.map((key) => [
      key.id.toString(),
      `${key.prefix}…`,
      key.name,
      stateOf(key),
      key.scopes.join(','),
      day(key.createdAt),
      day(key.expiresAt),
      day(key.revokedAt),
    ]),
  );
}

function stateOf({ revokedAt, expiresAt }: StoredApiKey): 'revoked' | 'expired' | 'active' {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}

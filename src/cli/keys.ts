import type { Command } from 'commander';
import type { StoredApiKey } from '#api-keys';
import { table } from '#runtime';
import { product } from '#settings';
import type { CommandContext } from './context.js';
import { dayCell, durationArgument, printable, resultText, timeCell } from './terminal.js';

const KEY_ARGUMENT = 'id of the key, or at least 6 of its displayed first characters';

type KeyMember = string | readonly string[] | bigint | Date | null;

interface Output {
  quiet?: boolean;
  json?: boolean;
}

/** Adds `keys create|list|show|rotate|revoke`. */
export function addKeyCommands(program: Command, context: CommandContext): void {
  const keys = program.command('keys').description('create, list, rotate and revoke API keys');
  addCreate(keys, context);
  addList(keys, context);
  addShow(keys, context);
  addRotate(keys, context);
  addRevoke(keys, context);
}

function addCreate(keys: Command, context: CommandContext): void {
  keys
    .command('create')
    .description('create an API key for a client; its secret is printed only once')
    .requiredOption('--client <name>', 'name of the application that uses the key; a new name creates a client')
    .option('--scopes <list>', `separated by commas (default: ${context.application.defaultScopes.join(',')})`)
    .option('--expires <duration>', 'lifetime, such as 30m, 24h or 90d (default: no end)', durationArgument)
    .option('--quiet', 'print only the secret')
    .option('--json', 'print JSON')
    .action(async (options: { client: string; scopes?: string; expires?: number } & Output) => {
      const scopes = options.scopes?.split(',').map((scope) => scope.trim());
      const created = await context.withKeys((apiKeys) =>
        apiKeys.create({
          client: options.client,
          scopes,
          expiresAt: options.expires === undefined ? undefined : new Date(Date.now() + options.expires),
        }),
      );
      printSecret(context, options, created);
    });
}

function addList(keys: Command, context: CommandContext): void {
  keys
    .command('list')
    .description('list API keys, sorted by client')
    .option('--client <name>', 'only keys of this client')
    .option('--json', 'print JSON')
    .action(async ({ client, json }: { client?: string; json?: boolean }) => {
      const list = await context.withKeys((apiKeys) => apiKeys.list({ client }));
      const text =
        list.length === 0 ? `No API key. Make one: ${product().command} keys create --client my-app` : keyTable(list);
      context.print(resultText(json, list.map(describe), text));
    });
}

function addShow(keys: Command, context: CommandContext): void {
  keys
    .command('show')
    .description('show all members of an API key')
    .argument('<key>', KEY_ARGUMENT)
    .option('--json', 'print JSON')
    .action(async (reference: string, { json }: { json?: boolean }) => {
      const key = await context.withKeys((apiKeys) => apiKeys.find(reference));
      context.print(resultText(json, describe(key), details(key)));
    });
}

function addRotate(keys: Command, context: CommandContext): void {
  keys
    .command('rotate')
    .description('create a key that replaces another; the old key expires after the overlap')
    .argument('<key>', KEY_ARGUMENT)
    .option('--overlap <duration>', 'how long both keys are valid (default: 24h)', durationArgument)
    .option('--quiet', 'print only the new secret')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { overlap?: number } & Output) => {
      const created = await context.withKeys((apiKeys) => apiKeys.rotate(reference, options.overlap));
      printSecret(context, options, created);
    });
}

function addRevoke(keys: Command, context: CommandContext): void {
  keys
    .command('revoke')
    .description('refuse an API key from this moment on')
    .argument('<key>', KEY_ARGUMENT)
    .option('--reason <text>', 'why; shown by keys show')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { reason?: string; json?: boolean }) => {
      const key = await context.withKeys((apiKeys) => apiKeys.revoke(reference, options.reason));
      context.print(resultText(options.json, describe(key), details(key)));
    });
}

/** Prints a new key with its secret; no other function prints a secret. */
function printSecret(
  context: CommandContext,
  { quiet, json }: Output,
  { key, secret, predecessor }: { key: StoredApiKey; secret: string; predecessor?: StoredApiKey },
): void {
  const value = { ...describe(key), secret, predecessor: predecessor && describe(predecessor) };
  const keys = keyTable(predecessor ? [predecessor, key] : [key]);
  const advice = 'Store it now: only its hash is kept, and it is never shown again.';
  context.print(resultText(json, value, quiet ? secret : `${secret}\n\n${advice}\n\n${keys}`));
}

/** A key for people and programs, without the object of its client. */
function describe({ client, ...key }: StoredApiKey): Record<string, KeyMember> {
  return { ...key, client: client.name, state: stateOf(key) };
}

function keyTable(keys: StoredApiKey[]): string {
  return table(
    ['ID', 'KEY', 'CLIENT', 'VALID UNTIL', 'LAST USED', 'SCOPES'],
    keys.map((key) => [
      key.id.toString(),
      `${key.prefix}…`,
      printable(key.client.name),
      stateOf(key) === 'active' ? dayCell(key.expiresAt) : stateOf(key),
      dayCell(key.lastUsedAt),
      key.scopes.join(','),
    ]),
  );
}

function details(key: StoredApiKey): string {
  const cell = (value: KeyMember): string =>
    value instanceof Date ? timeCell(value) : printable(String(value ?? '-'));
  return Object.entries(describe(key))
    .map(([name, value]) => `${name.padEnd(18)}  ${cell(value)}`)
    .join('\n');
}

function stateOf({ revokedAt, expiresAt }: Pick<StoredApiKey, 'revokedAt' | 'expiresAt'>): string {
  if (revokedAt) return 'revoked';
  return expiresAt && !(expiresAt.getTime() > Date.now()) ? 'expired' : 'active';
}

import type { Command } from 'commander';
import type { ApiKeysService, IssuedApiKey, StoredApiKey } from '#access';
import { printable, StartupError } from '#runtime';
import { nearestName } from '#settings';
import type { CommandContext, OpenedDatabase } from '#definition';
import { dayCell, durationArgument, NEW_DATABASE, resultText, table, timeCell } from './terminal.js';

const KEY_ARGUMENT = 'id of the key, or at least 6 of its first characters';

type KeyMember = string | readonly string[] | bigint | Date | null;

interface Output {
  quiet?: boolean;
  json?: boolean;
}

/** Works with the API keys. */
async function withKeys<Result>(
  context: CommandContext,
  work: (apiKeys: ApiKeysService) => Promise<Result>,
): Promise<Result> {
  const { ApiKeysService: Keys, ApiKeyVerifier } = await import('#access');
  const make = ({ database, clock }: OpenedDatabase): ApiKeysService =>
    new Keys(database, new ApiKeyVerifier(database, clock, context.application), clock, context.application);
  return context.with(Keys, make, work);
}

/** Adds `keys create|list|show|rotate|revoke`. */
export function addKeyCommands(program: Command, context: CommandContext): void {
  const keys = program.command('keys').description('create, list, rotate and revoke API keys');
  keys
    .command('create')
    .description('create an API key for a client; its secret is printed only once')
    .requiredOption('--client <name>', 'name of the application that uses the key; a new name creates a client')
    .option('--scopes <list>', `separated by commas (default: ${context.application.defaultScopes.join(',')})`)
    .option('--expires <duration>', 'lifetime, such as 30m, 24h or 90d (default: no end)', durationArgument)
    .option('--force', 'create it although no operation needs one of its scopes')
    .option(...NEW_DATABASE)
    .option('--quiet', 'print only the secret')
    .option('--json', 'print JSON')
    .action(async (options: { client: string; scopes?: string; expires?: number; force?: boolean } & Output) => {
      const scopes = options.scopes?.split(',').map((scope) => scope.trim());
      if (scopes !== undefined && !options.force) await checkScopes(context, scopes);
      const { client, expires } = options;
      const expiresAt = expires === undefined ? undefined : new Date(Date.now() + expires);
      await withKeys(context, async (apiKeys) =>
        printNewKey(context, options, await apiKeys.create({ client, scopes, expiresAt })),
      );
    });
  keys
    .command('list')
    .description('list API keys, sorted by client')
    .option('--client <name>', 'only keys of this client')
    .option('--json', 'print JSON')
    .action(async ({ client, json }: { client?: string; json?: boolean }) => {
      await withKeys(context, async (apiKeys) => {
        const list = await apiKeys.list({ client });
        const noKey = `There is no such API key. '${context.application.product.command} keys create --client my-app' makes one.`;
        const text = list.length > 0 ? keyTable(list) : noKey;
        context.print(resultText(json, list.map(describe), text));
      });
    });
  keys
    .command('show')
    .description('show all members of an API key')
    .argument('<key>', KEY_ARGUMENT)
    .option('--json', 'print JSON')
    .action(async (reference: string, { json }: { json?: boolean }) => {
      const key = await withKeys(context, (apiKeys) => apiKeys.find(reference));
      context.print(resultText(json, describe(key), details(key)));
    });
  keys
    .command('rotate')
    .description('create a key that replaces another; the old key expires after the overlap')
    .argument('<key>', KEY_ARGUMENT)
    .option('--overlap <duration>', 'how long both keys are valid (default: 24h)', durationArgument)
    .option('--quiet', 'print only the new secret')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { overlap?: number } & Output) => {
      await withKeys(context, async (apiKeys) =>
        printNewKey(context, options, await apiKeys.rotate(reference, options.overlap)),
      );
    });
  keys
    .command('revoke')
    .description('refuse an API key from this moment on')
    .argument('<key>', KEY_ARGUMENT)
    .option('--reason <text>', 'why; shown by keys show')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { reason?: string; json?: boolean }) => {
      const key = await withKeys(context, (apiKeys) => apiKeys.revoke(reference, options.reason));
      context.print(resultText(options.json, describe(key), details(key)));
    });
}

/** @throws StartupError for a scope that no operation needs; `create` explains what is no scope at all */
async function checkScopes(context: CommandContext, scopes: readonly string[]): Promise<void> {
  const { isScope } = await import('#operations');
  const { scopes: known } = await context.document();
  const unknown = scopes.find((scope) => !known.includes(scope));
  if (unknown === undefined || !scopes.every(isScope)) return;
  const nearest = nearestName(unknown, known);
  const advice = nearest === undefined ? `Known are ${known.join(', ')}.` : `Did you mean '${nearest}'?`;
  throw new StartupError(
    `No operation needs the scope '${unknown}'. ${advice} No key was created. Add --force if a module checks it itself.`,
  );
}

/** Prints a new key with its secret; no other function prints a secret. */
function printNewKey(
  context: CommandContext,
  { quiet, json }: Output,
  { key, secret, predecessor }: IssuedApiKey & { predecessor?: StoredApiKey },
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

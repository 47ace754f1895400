import type { Command } from 'commander';
import { readConfig } from '../config.js';
import { MAX_RATE_LIMIT_PER_MINUTE } from '../settings/settings.js';
import { DEFAULT_OVERLAP_MS } from '../platform/api-keys/api-key-format.js';
import type { StoredApiKey } from '../platform/api-keys/storage/api-key.repository.js';
import type { UsageSummary } from '../platform/key-usage/key-usage.repository.js';
import { nearestName } from '../platform/nearest-name.js';
import type { CommandContext } from './context.js';
import { CommandError, durationArgument, integerArgument } from './options.js';
import { printable, resultText, table, type Terminal, timeCell } from './terminal.js';

const KEY_ARGUMENT = 'id of the key, or at least 6 of its displayed first characters';

/** Days of usage that `keys show` sums up, today included. */
const SHOWN_DAYS = 30;

interface Output {
  quiet?: boolean;
  json?: boolean;
}

/** Adds `keys create|list|show|rotate|revoke|limit`. */
export function addKeyCommands(program: Command, context: CommandContext): void {
  const keys = program.command('keys').description('create, list, rotate, revoke and limit API keys');
  addCreate(keys, context);
  addList(keys, context);
  addShow(keys, context);
  addRotate(keys, context);
  addRevoke(keys, context);
  addLimit(keys, context);
}

function addCreate(keys: Command, context: CommandContext): void {
  const { terminal } = context;
  keys
    .command('create')
    .description('create an API key for a client; its secret is printed only once')
    .requiredOption('--client <name>', 'name of the application that uses the key; a new name creates a client')
    .option(
      '--scopes <list>',
      `scopes of the key, separated by commas (default: ${context.application.defaultScopes.join(',')})`,
    )
    .option(
      '--expires <duration>',
      'lifetime, such as 30m, 24h or 90d (default: no end)',
      durationArgument('--expires'),
    )
    .option('--quiet', 'print only the secret')
    .option('--json', 'print JSON')
    .action(async (options: { client: string; scopes?: string; expires?: number } & Output) => {
      const scopes = options.scopes?.split(',').map((scope) => scope.trim());
      if (scopes) await refuseUnknownScopes(scopes);
      const { key, secret } = await context.withKeys((apiKeys) =>
        apiKeys.create({
          client: options.client,
          scopes,
          expiresAt: options.expires === undefined ? undefined : new Date(Date.now() + options.expires),
        }),
      );
      printSecret(terminal, options, secret, { ...describe(key), secret }, [key]);
    });
}

function addList(keys: Command, context: CommandContext): void {
  const { terminal } = context;
  keys
    .command('list')
    .description('list API keys, sorted by client')
    .option('--client <name>', 'only keys of this client')
    .option('--expiring <duration>', 'only valid keys that expire within this time', durationArgument('--expiring'))
    .option(
      '--unused <duration>',
      'only valid keys that are older than this and unused for so long',
      durationArgument('--unused'),
    )
    .option('--json', 'print JSON')
    .action(async (options: { client?: string; expiring?: number; unused?: number; json?: boolean }) => {
      const { client, expiring: expiringWithin, unused: unusedFor } = options;
      const list = await context.withKeys((apiKeys) => apiKeys.list({ client, expiringWithin, unusedFor }));
      terminal.print(
        resultText(options.json, list.map(describe), list.length === 0 ? emptyListText(options) : keyTable(list)),
      );
    });
}

function addShow(keys: Command, context: CommandContext): void {
  const { terminal } = context;
  keys
    .command('show')
    .description(`show an API key and its calls in the last ${SHOWN_DAYS} days`)
    .argument('<key>', KEY_ARGUMENT)
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { json?: boolean }) => {
      const { key, usage } = await context.withKeys(async (apiKeys, keyUsage) => {
        const found = await apiKeys.find(reference);
        const today = new Date().toISOString().slice(0, 10);
        return { key: found, usage: await keyUsage.sumByOperation(found.id, today, SHOWN_DAYS) };
      });
      const operations = [...usage].map(([operation, summary]) => ({ operation, ...summary }));
      terminal.print(
        resultText(options.json, { ...describe(key), usage: operations }, `${details(key)}\n\n${usageTable(usage)}`),
      );
    });
}

function addRotate(keys: Command, context: CommandContext): void {
  const { terminal } = context;
  keys
    .command('rotate')
    .description('create a key that replaces another; the old key expires after the overlap')
    .argument('<key>', KEY_ARGUMENT)
    .option(
      '--overlap <duration>',
      `how long both keys are valid (default: ${DEFAULT_OVERLAP_MS / 3_600_000}h)`,
      durationArgument('--overlap'),
    )
    .option('--quiet', 'print only the new secret')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { overlap?: number } & Output) => {
      const { key, secret, predecessor } = await context.withKeys((apiKeys) =>
        apiKeys.rotate(reference, options.overlap),
      );
      printSecret(terminal, options, secret, { ...describe(key), secret, predecessor: describe(predecessor) }, [
        predecessor,
        key,
      ]);
    });
}

function addRevoke(keys: Command, context: CommandContext): void {
  const { terminal } = context;
  keys
    .command('revoke')
    .description('refuse an API key from this moment on')
    .argument('<key>', KEY_ARGUMENT)
    .option('--reason <text>', 'why; shown by keys show')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { reason?: string; json?: boolean }) => {
      const key = await context.withKeys((apiKeys) => apiKeys.revoke(reference, options.reason));
      terminal.print(resultText(options.json, describe(key), details(key)));
    });
}

function addLimit(keys: Command, context: CommandContext): void {
  const { terminal } = context;
  keys
    .command('limit')
    .description('set the rate limit of a client, for all of its keys together')
    .argument('<client>', 'name of the client')
    .option(
      '--per-minute <n>',
      `requests a minute, 0 to ${MAX_RATE_LIMIT_PER_MINUTE}; 0 means no limit`,
      integerArgument('--per-minute', 0, MAX_RATE_LIMIT_PER_MINUTE),
    )
    .option('--default', 'remove the limit of its own; the default limit applies again')
    .option('--json', 'print JSON')
    .action(async (name: string, options: { perMinute?: number; default?: boolean; json?: boolean }) => {
      if ((options.perMinute === undefined) !== (options.default === true)) {
        throw new CommandError('keys limit needs either --per-minute or --default');
      }
      const client = await context.withKeys((apiKeys) => apiKeys.limit(name, options.perMinute ?? null));
      const text = `${printable(client.name)}: ${limitText(client.rateLimitPerMinute)}`;
      terminal.print(
        resultText(options.json, { client: client.name, rateLimitPerMinute: client.rateLimitPerMinute }, text),
      );
    });
}

/** @throws CommandError for a scope that no operation of the application requires */
async function refuseUnknownScopes(scopes: readonly string[]): Promise<void> {
  // Loads the controllers of the application, which declare the scopes.
  await import('../app.module.js');
  const { declaredScopes } = await import('../platform/auth/require-scopes.decorator.js');
  const known = declaredScopes();
  const unknown = scopes.find((scope) => !known.includes(scope));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, known);
  const advice = nearest === undefined ? '' : `; did you mean '${nearest}'?`;
  throw new CommandError(`'${printable(unknown)}' is no scope of this service${advice} (scopes: ${known.join(', ')})`);
}

function emptyListText({ client, expiring, unused }: { client?: string; expiring?: number; unused?: number }): string {
  if (expiring !== undefined || unused !== undefined) return 'No API key matches.';
  if (client !== undefined) return `${printable(client)} has no API key.`;
  return 'No API keys yet. Make one: npm run petstore -- keys create --client my-app';
}

/** Prints a new key with its secret; no other function prints a secret. */
function printSecret(terminal: Terminal, options: Output, secret: string, value: unknown, keys: StoredApiKey[]): void {
  const advice = 'Store it now: only its hash is kept, and it is never shown again.';
  terminal.print(
    resultText(options.json, value, options.quiet ? secret : `${secret}\n\n${advice}\n\n${keyTable(keys)}`),
  );
}

function describe({ client, ...key }: StoredApiKey): Record<string, unknown> {
  return { ...key, client: client.name, rateLimitPerMinute: client.rateLimitPerMinute, state: stateOf(key) };
}

function keyTable(keys: StoredApiKey[]): string {
  return table(
    ['ID', 'KEY', 'CLIENT', 'STATE', 'SCOPES', 'EXPIRES', 'LAST USED'],
    keys.map((key) => [
      key.id.toString(),
      `${key.prefix}…`,
      printable(key.client.name),
      stateOf(key),
      key.scopes.join(','),
      timeCell(key.expiresAt),
      timeCell(key.lastUsedAt),
    ]),
  );
}

function details(key: StoredApiKey): string {
  const reason = key.revokedReason === null ? '' : ` (${printable(key.revokedReason)})`;
  const rows: [string, string][] = [
    ['id', key.id.toString()],
    ['key', `${key.prefix}…`],
    ['client', `${printable(key.client.name)}, ${limitText(key.client.rateLimitPerMinute)}`],
    ['state', stateOf(key)],
    ['scopes', key.scopes.join(', ')],
    ['created (UTC)', timeCell(key.createdAt)],
    ['expires', timeCell(key.expiresAt)],
    ['revoked', `${timeCell(key.revokedAt)}${reason}`],
    ['last used', timeCell(key.lastUsedAt)],
    ['replaces', key.predecessorId?.toString() ?? '-'],
    ['replaced by', key.successorId?.toString() ?? '-'],
  ];
  return rows.map(([name, value]) => `${name.padEnd(13)}  ${value}`).join('\n');
}

function usageTable(usage: Map<string, UsageSummary>): string {
  if (usage.size === 0) return `Nothing was called with it in the last ${SHOWN_DAYS} days.`;
  const rows = [...usage].map(([operation, { calls, lastCallAt, lastUserAgent }]) => [
    operation,
    calls.toString(),
    timeCell(lastCallAt),
    printable(lastUserAgent ?? '-'),
  ]);
  return table(['OPERATION', 'CALLS', 'LAST CALL (UTC)', 'LAST USER AGENT'], rows);
}

function limitText(perMinute: number | null): string {
  const limit = perMinute ?? readConfig().rateLimitPerMinute;
  const text = limit === 0 ? 'no rate limit' : `${limit} requests a minute`;
  return perMinute === null ? `${text} (the default)` : text;
}

function stateOf({ revokedAt, expiresAt }: Pick<StoredApiKey, 'revokedAt' | 'expiresAt'>): string {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}

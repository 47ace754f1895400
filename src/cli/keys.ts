import type { Command } from 'commander';
import { APPLICATION } from '../app.description.js';
import { MAX_RATE_LIMIT_PER_MINUTE } from '../config.js';
import { DEFAULT_OVERLAP_MS } from '../platform/api-keys/key-rotation.js';
import type { StoredApiKey } from '../platform/api-keys/api-key.repository.js';
import type { ApiKeysService } from '../platform/api-keys/api-keys.service.js';
import type { KeyUsageRepository, UsageSummary } from '../platform/key-usage/key-usage.repository.js';
import {
  CommandError,
  durationArgument,
  integerArgument,
  printable,
  printResult,
  table,
  timeCell,
} from './terminal.js';

const KEY_ARGUMENT = 'id of the key, or at least 6 of its displayed first characters';

/** Days of usage that `keys show` sums up, today included. */
const SHOWN_DAYS = 30;

interface Output {
  quiet?: boolean;
  json?: boolean;
}

/** Adds `keys create|list|show|rotate|revoke|limit`. */
export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('create, list, rotate, revoke and limit API keys');

  keys
    .command('create')
    .description('create an API key for a client; its secret is printed only once')
    .requiredOption('--client <name>', 'name of the application that uses the key; a new name creates a client')
    .option(
      '--scopes <list>',
      `scopes of the key, separated by commas (default: ${APPLICATION.defaultScopes.join(',')})`,
    )
    .option(
      '--expires <duration>',
      'lifetime, such as 30m, 24h or 90d (default: no end)',
      durationArgument('--expires'),
    )
    .option('--quiet', 'print only the secret')
    .option('--json', 'print JSON')
    .action(async (options: { client: string; scopes?: string; expires?: number } & Output) => {
      const { key, secret } = await withApiKeys((apiKeys) =>
        apiKeys.create({
          client: options.client,
          scopes: options.scopes?.split(',').map((scope) => scope.trim()),
          expiresAt: options.expires === undefined ? undefined : new Date(Date.now() + options.expires),
        }),
      );
      printSecret(options, secret, { ...describe(key), secret }, [key]);
    });

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
      const list = await withApiKeys((apiKeys) => apiKeys.list({ client, expiringWithin, unusedFor }));
      printResult(options.json, list.map(describe), list.length === 0 ? 'There are no such API keys.' : keyTable(list));
    });

  keys
    .command('show')
    .description(`show an API key and its calls in the last ${SHOWN_DAYS} days`)
    .argument('<key>', KEY_ARGUMENT)
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { json?: boolean }) => {
      const { key, usage } = await withApiKeys(async (apiKeys, keyUsage) => {
        const found = await apiKeys.find(reference);
        const today = new Date().toISOString().slice(0, 10);
        return { key: found, usage: await keyUsage.sumByOperation(found.id, today, SHOWN_DAYS) };
      });
      const operations = [...usage].map(([operation, summary]) => ({ operation, ...summary }));
      printResult(options.json, { ...describe(key), usage: operations }, `${details(key)}\n\n${usageTable(usage)}`);
    });

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
      const { key, secret, predecessor } = await withApiKeys((apiKeys) => apiKeys.rotate(reference, options.overlap));
      printSecret(options, secret, { ...describe(key), secret, predecessor: describe(predecessor) }, [
        predecessor,
        key,
      ]);
    });

  keys
    .command('revoke')
    .description('refuse an API key from this moment on')
    .argument('<key>', KEY_ARGUMENT)
    .option('--reason <text>', 'why; shown by keys show')
    .option('--json', 'print JSON')
    .action(async (reference: string, options: { reason?: string; json?: boolean }) => {
      const key = await withApiKeys((apiKeys) => apiKeys.revoke(reference, options.reason));
      printResult(options.json, describe(key), details(key));
    });

  keys
    .command('limit')
    .description('set the rate limit of a client, for all of its keys together')
    .argument('<client>', 'name of the client')
    .option(
      '--per-minute <n>',
      'requests a minute; 0 means no limit',
      integerArgument('--per-minute', 0, MAX_RATE_LIMIT_PER_MINUTE),
    )
    .option('--default', 'remove the limit of its own; RATE_LIMIT_PER_MINUTE applies again')
    .option('--json', 'print JSON')
    .action(async (name: string, options: { perMinute?: number; default?: boolean; json?: boolean }) => {
      if ((options.perMinute === undefined) !== (options.default === true)) {
        throw new CommandError('keys limit needs either --per-minute or --default');
      }
      const client = await withApiKeys((apiKeys) => apiKeys.limit(name, options.perMinute ?? null));
      const text = `${printable(client.name)}: ${limitText(client.rateLimitPerMinute)}`;
      printResult(options.json, { client: client.name, rateLimitPerMinute: client.rateLimitPerMinute }, text);
    });
}

async function withApiKeys<Result>(
  work: (apiKeys: ApiKeysService, keyUsage: KeyUsageRepository) => Promise<Result>,
): Promise<Result> {
  const { withKeys } = await import('./command.module.js');
  return withKeys(work);
}

/** Prints a new key with its secret; no other function prints a secret. */
function printSecret(options: Output, secret: string, value: unknown, keys: StoredApiKey[]): void {
  const advice = 'Store it now: only its hash is kept, and it is never shown again.';
  printResult(options.json, value, options.quiet ? secret : `${secret}\n\n${advice}\n\n${keyTable(keys)}`);
}

function describe({ client, ...key }: StoredApiKey): Record<string, unknown> {
  return { ...key, client: client.name, rateLimitPerMinute: client.rateLimitPerMinute, state: stateOf(key) };
}

function keyTable(keys: StoredApiKey[]): string {
  return table(
    ['ID', 'KEY', 'CLIENT', 'STATE', 'SCOPES', 'CREATED (UTC)', 'EXPIRES', 'LAST USED'],
    keys.map((key) => [
      key.id.toString(),
      `${key.prefix}…`,
      printable(key.client.name),
      stateOf(key),
      key.scopes.join(','),
      timeCell(key.createdAt),
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
  if (perMinute === null) return 'RATE_LIMIT_PER_MINUTE';
  return perMinute === 0 ? 'no rate limit' : `${perMinute} requests a minute`;
}

function stateOf({ revokedAt, expiresAt }: Pick<StoredApiKey, 'revokedAt' | 'expiresAt'>): string {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}

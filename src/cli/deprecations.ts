import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import type { UsageSummary } from '../platform/key-usage/key-usage.js';
import type { DeprecatedOperation, OpenApiDocument } from '../platform/openapi/openapi-document.js';
import { StartupError } from '../platform/errors/startup-error.js';
import { integerArgument } from './options.js';
import { resultText, usageTable } from './terminal.js';

/** Usage is kept for so long. */
const MAX_DAYS = 400;
const DAY_MS = 86_400_000;

/** Exit code when removal is not safe. 1 means that the command failed. */
const NOT_SAFE = 2;

/** Adds `deprecations report`. */
export function addDeprecationCommands(program: Command, context: CommandContext): void {
  const deprecations = program
    .command('deprecations')
    .description('report which clients still call deprecated operations');

  deprecations
    .command('report')
    .description(
      'report which clients called a deprecated operation, and whether removing it is safe;\n' +
        `exit code 0 when it is safe, ${NOT_SAFE} when not, 1 when the report failed`,
    )
    .argument('<operation>', 'its operationId, such as getPet')
    .option('--days <n>', `days to look back, today included, 1 to ${MAX_DAYS}`, integerArgument(1, MAX_DAYS), 30)
    .option('--json', 'print JSON')
    .action(async (operation: string, { days, json }: { days: number; json?: boolean }) => {
      const report = await createReport(context, operation, days);
      context.print(resultText(json, report, reportText(report)));
      if (!report.safeToRemove) context.exitCode = NOT_SAFE;
    });
}

/** Who called a deprecated operation in a period, and whether removing it is safe. Days are in UTC. */
interface Report {
  readonly operation: string;
  readonly endpoint: string;
  readonly from: string;
  readonly to: string;
  /** The first day with usage of any operation; null without usage. */
  readonly countedSince: string | null;
  readonly sunset: Date;
  readonly clients: readonly ({ readonly client: string } & UsageSummary)[];
  readonly safeToRemove: boolean;
}

async function createReport(context: CommandContext, operation: string, days: number): Promise<Report> {
  const { sunset, endpoint } = deprecationOf(await context.document(), operation);
  const now = Date.now();
  const to = isoDay(now);
  const from = isoDay(now - (days - 1) * DAY_MS);
  const { countedSince, usage } = await context.withKeys(async (_, keyUsage) => ({
    countedSince: await keyUsage.firstDay(),
    usage: await keyUsage.sumByClient(operation, to, days),
  }));
  const clients = [...usage].map(([client, summary]) => ({ client, ...summary }));
  const safeToRemove = clients.length === 0 && countedSince !== null && countedSince <= from;
  return { operation, endpoint, from, to, countedSince, sunset, clients, safeToRemove };
}

function reportText(report: Report): string {
  const { operation, endpoint, from, to, countedSince, sunset, clients, safeToRemove } = report;
  const rows = clients.map(({ client, ...usage }) => [client, usage] as const);
  const callers = rows.length === 0 ? 'No client has called it.' : usageTable('CLIENT', rows);
  const reason =
    clients.length > 0
      ? `${clients.length} client(s) still call it`
      : `usage is known only from ${countedSince ?? to} on`;
  const verdict = safeToRemove ? 'safe to remove' : `not safe to remove: ${reason}`;
  return `${operation} (${endpoint}), ${from} to ${to}. Sunset: ${isoDay(sunset.getTime())}.\n\n${callers}\n\nVerdict: ${verdict}.`;
}

/** @throws StartupError when the operation does not exist or is not deprecated */
function deprecationOf(document: OpenApiDocument, operation: string): DeprecatedOperation {
  const found = document.deprecations.find(({ operationId }) => operationId === operation);
  if (!found) {
    const known = document.deprecations.map(({ operationId }) => operationId).join(', ') || 'none';
    throw new StartupError(`'${operation}' is no deprecated operation; deprecated are: ${known}`);
  }
  return found;
}

function isoDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

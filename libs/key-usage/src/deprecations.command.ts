import type { Command } from 'commander';
import { printable, StartupError } from '#runtime';
import { type CommandContext } from '#definition';
import { integerArgument, resultText, table, timeCell } from '#commands';

const MAX_DAYS = 400;
const DAY_MS = 86_400_000;

/** Exit code when removal is not safe. 1 means that the command failed. */
const NOT_SAFE = 2;

/** Adds `deprecations report`: who called a deprecated operation in a period, and whether removing it is safe. Days are in UTC. */
export function addDeprecationCommand(program: Command, context: CommandContext): void {
  program
    .command('deprecations')
    .description('report which clients still call deprecated operations')
    .command('report')
    .description(
      'report which clients called a deprecated operation, and whether removing it is safe;\n' +
        `exit code 0 when it is safe, ${NOT_SAFE} when not, 1 when the report failed`,
    )
    .argument('<operation>', 'its operationId in the OpenAPI document')
    .option('--days <n>', `days to look back, today included, 1 to ${MAX_DAYS}`, integerArgument(1, MAX_DAYS), 30)
    .option('--json', 'print JSON')
    .action(async (operation: string, { days, json }: { days: number; json?: boolean }) => {
      const { deprecations } = await context.document();
      const deprecation = deprecations.find(({ operationId }) => operationId === operation);
      if (deprecation === undefined) {
        const known = deprecations.map(({ operationId }) => operationId).join(', ') || 'none';
        throw new StartupError(`'${operation}' is no deprecated operation; deprecated are: ${known}`);
      }
      const { sunset, endpoint } = deprecation;
      const { isoDay, KeyUsage } = await import('./key-usage.js');
      const now = Date.now();
      const [from, to] = [isoDay(now - (days - 1) * DAY_MS), isoDay(now)];
      const { countedSince, clients } = await context.with(
        KeyUsage,
        ({ database, clock }) => new KeyUsage(database, clock),
        async (keyUsage) => ({
          countedSince: await keyUsage.firstDay(),
          clients: await keyUsage.sumByClient(operation, to, days),
        }),
      );
      const safeToRemove = clients.length === 0 && countedSince !== null && countedSince <= from;
      const report = { operation, endpoint, from, to, countedSince, sunset, clients, safeToRemove };
      const rows = clients.map(({ client, calls, lastCallAt, lastUserAgent }) => {
        return [printable(client), String(calls), timeCell(lastCallAt), printable(lastUserAgent ?? '-')];
      });
      const callers = table(['CLIENT', 'CALLS', 'LAST CALL (UTC)', 'LAST USER AGENT'], rows);
      const unknown = `usage is known only from ${countedSince ?? to} on`;
      const reason = clients.length > 0 ? `clients that call it: ${clients.length}` : unknown;
      const verdict = safeToRemove ? 'safe to remove' : `not safe to remove: ${reason}`;
      const heading = `${operation} (${endpoint}), ${from} to ${to}. Sunset: ${isoDay(sunset.getTime())}.`;
      const text = `${heading}\n\n${clients.length > 0 ? callers : 'No client has called it.'}\n\nVerdict: ${verdict}.`;
      context.print(resultText(json, report, text));
      if (!safeToRemove) context.exitCode = NOT_SAFE;
    });
}

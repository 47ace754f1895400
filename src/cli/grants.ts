import type { Command } from 'commander';
import type { CommandContext } from './context.js';
import { resultText } from './terminal.js';

/** Adds `grants`. */
export function addGrantsCommand(program: Command, { terminal }: CommandContext): void {
  program
    .command('grants')
    .description("print the SQL that gives the service's role its rights; run it as the owner of the schema")
    .requiredOption('--role <name>', 'role that the service connects as')
    .option('--json', 'print JSON')
    .action(({ role, json }: { role: string; json?: boolean }) => {
      const statements = grantStatements(role);
      terminal.print(resultText(json, { role, statements }, statements.join('\n')));
    });
}

/**
 * The statements that grant the service's role its rights: to read and change rows, in existing tables and in those of
 * later migrations. Every command but `migrate`, `migrate:revert` and `import` needs the same rights. The owner of the schema runs
 * the statements, before or after `migrate`; running them again changes nothing.
 *
 * Requests with an `Idempotency-Key` need the rights on sequences: they draw the id of a row before they store it.
 */
export function grantStatements(role: string): string[] {
  const name = quoteIdentifier(role);
  return [
    `GRANT USAGE ON SCHEMA public TO ${name};`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${name};`,
    `GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${name};`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${name};`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO ${name};`,
  ];
}

/** Quotes a name as an SQL identifier (PostgreSQL 18, section 4.1.1), always, because it may be a key word. */
function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import type { Statement } from '../statements/statement.js';
import type { StatementRunner } from '../connections/statement-runner.js';
import { type AppliedMigration, statusOf } from '../schema/migration-history.js';
import { schemaFault, type SchemaFault } from '../schema/schema-check.js';

/** Whether the database can serve the requests of this version. */
export type Readiness = 'ready' | 'unreachable' | SchemaFault;

/** Shortest time in ms between two queries. */
const INTERVAL_MS = 1_000;

/** Longest time in ms to wait for the answer. */
const TIMEOUT_MS = 1_000;

const APPLIED_MIGRATIONS: Statement = {
  name: 'schema_migration_applied',
  text: `SELECT name, applied_at, backward_compatible FROM schema_migration`,
};

type AppliedRow = [name: string, appliedAt: Date, backwardCompatible: boolean];

/** SQLSTATE of a table that does not exist. */
const UNDEFINED_TABLE = '42P01';

/** Finds out whether the primary answers, and whether this version can run on its schema. */
export class ReadinessProbe {
  private answer: Promise<Readiness> = Promise.resolve('unreachable');
  private expiresAt = -Infinity;

  constructor(
    private readonly statements: StatementRunner,
    private readonly dataSource: DataSource,
  ) {}

  /** Answers within 1 s. The answer is shared for 1 s, because the readiness endpoint is public. */
  readiness(): Promise<Readiness> {
    if (performance.now() >= this.expiresAt) {
      this.expiresAt = performance.now() + INTERVAL_MS;
      this.answer = this.ask();
    }
    return this.answer;
  }

  private async ask(): Promise<Readiness> {
    const answer = this.statements.run<AppliedRow>(APPLIED_MIGRATIONS, []).then(
      (rows) => this.readinessWith(rows),
      (error: { code?: string }) => (error.code === UNDEFINED_TABLE ? this.readinessWith([]) : 'unreachable'),
    );
    return Promise.race([answer, sleep(TIMEOUT_MS, 'unreachable' as const, { ref: false })]);
  }

  private readinessWith(rows: readonly AppliedRow[]): Readiness {
    const applied = new Map<string, AppliedMigration>(
      rows.map(([name, appliedAt, backwardCompatible]) => [name, { appliedAt, backwardCompatible }]),
    );
    return schemaFault(statusOf(this.dataSource, applied)) ?? 'ready';
  }
}

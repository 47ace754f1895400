import type { DataSource, QueryRunner } from 'typeorm';
import { originalError } from '../migration-error.js';
import { appliedMigrations, type KnownMigration, knownMigrations } from '../migration-history.js';
import { type Query, replaceQuery } from '../replace-query.js';
import { withSchemaLock } from '../schema-lock.js';
import { type PlannedLock, TrialLocks } from './trial-locks.js';

/** Longest total time in ms of the statements of a trial. They may block requests during that time. */
export const TRIAL_TIMEOUT_MS = 5_000;

/** Largest number of recorded statements of a migration. A migration whose statements do not run may never end. */
const MAX_STATEMENTS = 1_000;

/** A statement of a pending migration. */
export interface PlannedStatement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  /**
   * New locks on tables that existed before the trial. A lock is listed only with the first statement that takes it.
   * Undefined for a statement that was not run.
   */
  readonly locks: readonly PlannedLock[] | undefined;
}

/** A pending migration. */
export interface PlannedMigration {
  readonly name: string;
  readonly backwardCompatible: boolean;
  /** Whether it is applied in a transaction. A migration without one cannot be tried. */
  readonly inTransaction: boolean;
  readonly statements: readonly PlannedStatement[];
  /** Why the trial, or the recording of the statements, failed; undefined if it succeeded. */
  readonly failure: string | undefined;
}

/**
 * The pending migrations with their statements and locks. They are tried in one transaction, which is rolled back. The trial
 * holds their locks, for TRIAL_TIMEOUT_MS at most. A migration without a transaction cannot be tried: its statements are
 * recorded, and only its SELECTs run. A later migration that depends on it fails the trial.
 *
 * @throws StartupError when another process migrates for over 60 s
 */
export async function planMigrations(dataSource: DataSource): Promise<PlannedMigration[]> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const applied = await appliedMigrations(queryRunner);
    const pending = knownMigrations(dataSource).filter(({ name }) => !applied.has(name));
    await queryRunner.startTransaction();
    const trial = new Trial(queryRunner);
    try {
      await trial.begin();
      const plan: PlannedMigration[] = [];
      for (const migration of pending) plan.push(await trial.plan(migration));
      return plan;
    } finally {
      trial.end();
      await queryRunner.rollbackTransaction();
    }
  });
}

/** Statements of migrations that open or close transactions. They are skipped, because the trial is one transaction. */
const TRANSACTION_CONTROL = /^\s*(SAVEPOINT|RELEASE|ROLLBACK|START|BEGIN|COMMIT)\b/i;

/** Statements that always run, because the migration may depend on their results. */
const READS = /^\s*(SELECT|SHOW)\b/i;

class Trial {
  private run!: Query;
  /** Restores the query runner's own `query`. */
  readonly end: () => void;
  private readonly locks = new TrialLocks();
  private usedMs = 0;
  private statements: PlannedStatement[] = [];
  private inTransaction = true;

  constructor(private readonly queryRunner: QueryRunner) {
    this.end = replaceQuery(queryRunner, (query) => {
      this.run = query;
      return (text, ...others) => this.record(text, others);
    });
  }

  /** Must be called before the first migration. */
  begin(): Promise<void> {
    return this.locks.begin(this.run);
  }

  async plan({ name, migration }: KnownMigration): Promise<PlannedMigration> {
    this.statements = [];
    this.inTransaction = migration.transaction !== false;
    let failure: string | undefined;
    await this.run('SAVEPOINT plan');
    try {
      await migration.up(this.queryRunner);
    } catch (error) {
      failure = originalError(error).message;
      await this.run('ROLLBACK TO plan');
    }
    const { backwardCompatible } = migration;
    return { name, backwardCompatible, inTransaction: this.inTransaction, statements: this.statements, failure };
  }

  private async record(text: string, others: unknown[]): Promise<unknown> {
    if (TRANSACTION_CONTROL.test(text)) return undefined;
    if (this.statements.length >= MAX_STATEMENTS) throw new Error(`It has more than ${MAX_STATEMENTS} statements.`);
    const index = this.statements.length;
    const parameters = Array.isArray(others[0]) ? (others[0] as unknown[]) : [];
    this.statements.push({ sql: withoutMargin(text), parameters, locks: undefined });
    if (!this.inTransaction && !READS.test(text)) return [];

    const leftMs = Math.ceil(TRIAL_TIMEOUT_MS - this.usedMs);
    if (leftMs <= 0) throw new Error(`The trial takes longer than ${TRIAL_TIMEOUT_MS / 1000} s.`);
    await this.run(`SET LOCAL statement_timeout = ${leftMs}`);
    const startedAt = performance.now();
    const result = await this.run(text, ...others).finally(() => (this.usedMs += performance.now() - startedAt));
    this.statements[index] = {
      ...this.statements[index],
      locks: await this.locks.newLocks(this.run),
    } as PlannedStatement;
    return result;
  }
}

/** Removes surrounding blank lines, and the common indentation of the lines. */
function withoutMargin(text: string): string {
  const lines = text.trim().split('\n');
  const margins = lines.slice(1).flatMap((line) => (line.trim() === '' ? [] : [line.search(/\S/)]));
  const margin = Math.min(...margins);
  return lines.map((line, index) => (index === 0 ? line : line.slice(margin))).join('\n');
}

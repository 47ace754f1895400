import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { migrationStatus } from '../schema/migration-history.js';
import { schemaFault } from '../schema/schema-check.js';

/** Whether the database can serve the requests of this version. */
export type Readiness = 'ready' | 'unreachable' | Error;

/** Shortest time in ms between two queries. */
const INTERVAL_MS = 1_000;

/** Longest time in ms to wait for the answer. */
const TIMEOUT_MS = 1_000;

/** Finds out whether the primary answers, and whether this version can run on its schema. */
export class ReadinessProbe {
  private answer: Promise<Readiness> = Promise.resolve('unreachable');
  private expiresAt = -Infinity;

  constructor(private readonly dataSource: DataSource) {}

  /** Answers within 1 s. The answer is shared for 1 s, because the readiness endpoint is public. */
  readiness(): Promise<Readiness> {
    if (performance.now() >= this.expiresAt) {
      this.expiresAt = performance.now() + INTERVAL_MS;
      const answer = migrationStatus(this.dataSource).then(
        (status) => schemaFault(status) ?? 'ready',
        () => 'unreachable' as const,
      );
      this.answer = Promise.race([answer, sleep(TIMEOUT_MS, 'unreachable' as const, { ref: false })]);
    }
    return this.answer;
  }
}

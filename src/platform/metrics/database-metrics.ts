import { Injectable } from '@nestjs/common';
import { Counter, Gauge, type Registry } from 'prom-client';
import { Database } from '../database/database.js';
import { REPLICA_STATES } from '../database/replicas/replica.js';
import type { Replicas } from '../database/replicas/replicas.js';
import { Metrics } from './metrics.js';

/** Metrics of this process's connections to the database. */
@Injectable()
export class DatabaseMetrics {
  constructor(metrics: Metrics, database: Database) {
    const registers = [metrics.registry];
    new Gauge({
      name: 'petstore_database_silent',
      help: '1 while the database does not answer at all, and requests are answered 503 without asking it; else 0.',
      registers,
      aggregator: 'max',
      collect() {
        this.set(database.isSilent ? 1 : 0);
      },
    });
    new Gauge({
      name: 'petstore_database_connections',
      help: 'Connections of the pool to the primary, by state: idle or busy.',
      labelNames: ['state'] as const,
      registers,
      collect() {
        const { connections, idle } = database.load;
        this.set({ state: 'idle' }, idle);
        this.set({ state: 'busy' }, connections - idle);
      },
    });
    new Gauge({
      name: 'petstore_database_waiting_statements',
      help: 'Statements that wait for a connection of the pool.',
      registers,
      collect() {
        this.set(database.load.waiting);
      },
    });
    if (database.replicas !== undefined) observeReplicas(database.replicas, registers);
  }
}

function observeReplicas({ all, fallbacks }: Replicas, registers: Registry[]): void {
  new Gauge({
    name: 'petstore_replica_state',
    help: 'Processes that find the read replica in this state: ready, behind, away, primary or foreign.',
    labelNames: ['replica', 'state'] as const,
    registers,
    collect() {
      for (const { name, state } of all) {
        for (const one of REPLICA_STATES) this.set({ replica: name, state: one }, state === one ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: 'petstore_replica_behind_bytes',
    help: 'How far the read replica was behind the primary when it was last asked, in bytes of the write-ahead log.',
    labelNames: ['replica'] as const,
    registers,
    aggregator: 'max',
    collect() {
      for (const { name, behindBytes } of all) this.set({ replica: name }, behindBytes);
    },
  });
  new Counter({
    name: 'petstore_replica_reads_total',
    help: 'Statements that the read replica has answered.',
    labelNames: ['replica'] as const,
    registers,
    collect() {
      this.reset();
      for (const { name, reads } of all) this.inc({ replica: name }, reads);
    },
  });
  new Counter({
    name: 'petstore_replica_fallbacks_total',
    help: 'Statements that the primary has answered in place of a read replica, by reason.',
    labelNames: ['reason'] as const,
    registers,
    collect() {
      this.reset();
      fallbacks.forEach((count, reason) => this.inc({ reason }, count));
    },
  });
}
